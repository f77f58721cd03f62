"""Maps the end of a run to HTTP errors, finish reasons and usage."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.core.messages import Usage
from hermes.surfaces.api.refusals import NO_RETRY, HttpError, http_error
from hermes.surfaces.api.run import Run

FINISH_REASONS = {"length": "length", "filtered": "content_filter"}


def run_error(run: Run) -> HttpError | None:
    """The error of a failed run, None for a successful one."""
    match run.failure:
        case None:
            pass
        case HttpError() as refusal:
            return refusal
        case HermesError() as error:
            return http_error(error)
        case _:
            words = "Internal error; see the server log."
            return HttpError(500, "internal", words, headers=NO_RETRY)
    assert run.ended is not None
    match run.ended.reason:
        case "failed" | "crashed":
            code = run.ended.detail or "agent_error"
            return HttpError(502, code, run.ended.error or "The turn failed.", headers=NO_RETRY)
        case "paused":
            words = run.ended.error or "A spending cap is reached."
            return HttpError(402, "budget_reached", words, headers=NO_RETRY)
        case _:
            return None


def finish_reason(run: Run) -> str:
    if run.ended is not None and run.ended.reason == "budget":
        return "length"
    replies = run.replies
    return FINISH_REASONS.get(replies[-1].stop, "stop") if replies else "stop"


def usage_of(run: Run) -> Usage:
    return run.ended.usage if run.ended is not None else Usage()


def hermes_fields(run: Run) -> JsonObject:
    images = {"images": list(run.images)} if run.images else {}
    return {
        **images,
        "session_id": run.session_id,
        "run_id": run.id,
        "tool_calls": run.tool_calls,
        "iterations": run.steps,
        "cost_usd": usage_of(run).cost,
        "interrupted": run.status == "cancelled",
    }
