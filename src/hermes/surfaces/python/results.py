"""The result of a turn as the dictionary that callers expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes.app.app import App
from hermes.core.events import Record, ReplyAdded, TurnEnded
from hermes.core.session import Session
from hermes.providers.endpoint import Endpoint
from hermes.surfaces.python.content import message_dicts


def result_of(
    app: App,
    session: Session,
    records: Sequence[Record],
    *,
    interrupt_message: str | None,
    pending_steer: str | None,
) -> dict[str, Any]:
    """The result of the turn with these records."""
    ended = next((r.event for r in reversed(records) if isinstance(r.event, TurnEnded)), None)
    replies = [r.event for r in records if isinstance(r.event, ReplyAdded)]
    last = replies[-1].message if replies else None
    reason = ended.reason if ended else "failed"
    model = replies[-1].model if replies else session.transcript.model
    provider = replies[-1].provider if replies else session.transcript.provider
    endpoint = app.models.find_endpoint(model, provider)
    result: dict[str, Any] = {
        "final_response": None if not last or last.calls else last.text or None,
        "last_reasoning": next(
            (reply.message.reasoning for reply in reversed(replies) if reply.message.reasoning),
            None,
        ),
        "messages": message_dicts(session.transcript.messages),
        "api_calls": sum(reply.usage.requests for reply in replies),
        "completed": reason == "done",
        "failed": reason == "failed",
        "partial": reason == "partial",
        "interrupted": reason == "interrupted",
        "turn_exit_reason": ended.detail if ended else "failed",
        "session_id": session.id,
        "model": model,
        "provider": provider,
        "base_url": endpoint.url if endpoint else "",
        "pending_steer": None if reason == "interrupted" else pending_steer,
        "cleanup_errors": [],
        "service_tier": app.controls[session.id].tier,
        **_usage(session, endpoint),
    }
    if reason in ("failed", "paused"):
        result["error"] = ended.error if ended else "the turn did not end"
        result["failure_reason"] = ended.detail if ended else "unknown"
    if reason == "guardrail" and ended:
        result["guardrail"] = ended.detail
    if interrupt_message is not None:
        result["interrupt_message"] = interrupt_message
    return result


def _usage(session: Session, endpoint: Endpoint | None) -> dict[str, Any]:
    """Session totals."""
    usage = session.transcript.usage
    status, source = _cost_origin(usage.cost, endpoint)
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "last_prompt_tokens": session.transcript.last_prompt,
        "estimated_cost_usd": usage.cost,
        "cost_status": status,
        "cost_source": source,
    }


def _cost_origin(cost: float | None, endpoint: Endpoint | None) -> tuple[str, str]:
    """The values of `cost_status` and `cost_source`."""
    if endpoint is None or endpoint.profile.included:
        return "included", "none"
    if cost is None:
        return "unknown", "none"
    if endpoint.profile.price_source == "none":
        return "actual", "provider_cost_api"
    return "estimated", endpoint.profile.price_source
