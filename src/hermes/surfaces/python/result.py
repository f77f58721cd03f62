"""The result of a turn as the dictionary that callers expect."""

from __future__ import annotations

from typing import Any

from hermes.core.events import Record, ReplyAdded, TurnEnded
from hermes.core.message_dicts import dicts_from_messages
from hermes.core.session import Session


def result_of(
    session: Session, records: list[Record], *, interrupt_message: str | None
) -> dict[str, Any]:
    ended = next((r.event for r in reversed(records) if isinstance(r.event, TurnEnded)), None)
    replies = [r.event for r in records if isinstance(r.event, ReplyAdded)]
    last = replies[-1].message if replies else None
    reason = ended.reason if ended else "failed"
    result: dict[str, Any] = {
        "final_response": None if not last or last.calls else last.text or None,
        "last_reasoning": next(
            (reply.message.reasoning for reply in reversed(replies) if reply.message.reasoning),
            None,
        ),
        "messages": dicts_from_messages(session.transcript.messages),
        "api_calls": sum(reply.usage.requests for reply in replies),
        "completed": reason == "done",
        "failed": reason == "failed",
        "partial": reason == "partial",
        "interrupted": reason == "interrupted",
        "turn_exit_reason": ended.detail if ended else "failed",
        "session_id": session.id,
        "model": replies[-1].model if replies else session.transcript.model,
        "provider": replies[-1].provider if replies else session.transcript.provider,
        "pending_steer": None,
        **_usage(session),
    }
    if reason in ("failed", "paused"):
        result["error"] = ended.error if ended else "the turn did not end"
        result["failure_reason"] = ended.detail if ended else "unknown"
    if reason == "guardrail" and ended:
        result["guardrail"] = ended.detail
    if interrupt_message is not None:
        result["interrupt_message"] = interrupt_message
    return result


def _usage(session: Session) -> dict[str, Any]:
    """Session totals."""
    usage = session.transcript.usage
    status = "unknown" if usage.cost is None else "estimated" if usage.estimated else "actual"
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
        "cost_source": "none" if usage.cost is None else "provider_cost_api",
    }
