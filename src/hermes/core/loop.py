"""One turn: ask the model and run its tool calls until it answers. Keep this file small."""

from __future__ import annotations

import logging

from hermes.codec.values import Value
from hermes.core.concurrency import TurnStopped, run_unless_stopped
from hermes.core.errors import BudgetReached, HermesError, ProviderError, describe_shortage
from hermes.core.events import (
    EndReason,
    MessageReceived,
    ReplyAdded,
    Steered,
    ToolFinished,
    TurnEnded,
)
from hermes.core.executor import run_calls
from hermes.core.fitting import request_reply
from hermes.core.hooks import before_final_answer, before_turn
from hermes.core.messages import AssistantMessage, Text, Usage, user_says
from hermes.core.planning import refuse_call
from hermes.core.prompt import Reply, TextDelta
from hermes.core.session_deps import TurnContext
from hermes.core.tool_calls import INTERRUPTED, STEPS_USED_UP, TURN_ENDED

log = logging.getLogger(__name__)

FRUITLESS_STEPS = 3
SUMMARY_REQUEST = (
    "{why} Without any more tools: say what is done, what is not, and what you would do next."
)
NO_SUMMARY = "{why} The model gave no summary; write `continue` to go on."
OUT_OF_STEPS = "The steps of this turn are used up."
REPEATED = "This turn was stopped, because {}."
INVALID_CALLS = "This turn was stopped, because the tool calls were invalid."


class Ending(Value):
    reason: EndReason
    detail: str = ""
    error: str = ""


async def run_turn(turn: TurnContext) -> None:
    """Run the open turn to its end. The transcript is valid afterwards in every case: each call has
    a result, and a TurnEnded is in the journal."""
    try:
        ending = await _steps(turn)
    except TurnStopped:
        ending = Ending(reason="interrupted", detail="interrupted_by_user")
    except BudgetReached as error:
        ending = Ending(reason="paused", detail=f"cap({error.scope})", error=str(error))
    except HermesError as error:
        reason = error.reason if isinstance(error, ProviderError) else type(error).__name__
        ending = Ending(reason="failed", detail=reason, error=str(error))
    except Exception as error:
        log.exception("turn crashed")
        bug = (
            f"The turn ended because of a bug in Hermes ({type(error).__name__}: {error}); "
            "`hermes logs errors` has the details."
        )
        shortage = describe_shortage(error)
        ending = Ending(reason="failed", detail=type(error).__name__, error=shortage or bug)
    await _end(turn, ending)


async def _steps(turn: TurnContext) -> Ending:
    if turn.hooks is not None:
        # Hooks must not run again for a turn that was continued.
        await turn.recorder.commit()
        await before_turn(turn, turn.hooks)
    if unfinished := turn.recorder.transcript.unanswered:
        await run_calls(turn, unfinished, continued=True)
    while turn.budget.consume():
        if turn.stop.is_set():
            raise TurnStopped
        await turn.recorder.wait_for_writes()
        if waiting := turn.recorder.transcript.steers():
            turn.recorder.note(Steered(takes=waiting))
        reply = await _ask(turn)
        if not reply.message.calls:
            return Ending(reason="done", detail=f"text_response({reply.message.stop})")
        await run_calls(turn, reply.message.calls)
        if turn.watch.verdict:
            await _wrap_up(turn, REPEATED.format(turn.watch.verdict))
            return Ending(reason="guardrail", detail=turn.watch.verdict)
        if turn.fruitless >= FRUITLESS_STEPS:
            await _wrap_up(turn, INVALID_CALLS)
            return Ending(reason="partial", detail="invalid_tool_calls")
    used = f"{turn.budget.used}/{turn.budget.total}"
    await _wrap_up(turn, OUT_OF_STEPS)
    return Ending(reason="budget", detail=f"max_iterations_reached({used})")


async def _ask(turn: TurnContext, *, text_only: bool = False) -> Reply:
    """The model's reply, noted but not committed: it becomes durable with what follows."""
    await turn.world.pacer.wait()
    turn.recorder.apply_pending()
    reply = await run_unless_stopped(turn.stop, request_reply(turn, text_only=text_only))
    if not turn.meter.has_booked:
        raise RuntimeError("a model was called without the meter")
    turn.world.kill_point("reply.received")
    turn.usage += reply.usage
    if turn.hooks is not None:
        reply = await before_final_answer(turn, turn.hooks, reply)
    turn.recorder.note(
        ReplyAdded(
            message=reply.message, usage=reply.usage, model=reply.model, provider=reply.provider
        )
    )
    return reply


async def _wrap_up(turn: TurnContext, why: str) -> None:
    """The turn ends early: make one last request, for text only. The person gets a text in any
    case."""
    text = SUMMARY_REQUEST.format(why=why)
    request = MessageReceived(message=user_says(text, origin="hermes"), steer=True)
    await turn.recorder.commit(request)
    await turn.recorder.commit(Steered(takes=turn.recorder.transcript.steers()))
    try:
        reply = (await _ask(turn, text_only=True)).message
    except ProviderError as error:
        log.warning("no summary of a stopped turn", extra={"error": str(error)})
        reply = AssistantMessage(parts=())
    for call in reply.calls:
        turn.recorder.note(ToolFinished(result=refuse_call(call, STEPS_USED_UP)))
    if not reply.text.strip():
        transcript, text = turn.recorder.transcript, NO_SUMMARY.format(why=why)
        turn.recorder.show(TextDelta(text=text))
        own = AssistantMessage(parts=(Text(text=text),))
        model, provider = transcript.model, transcript.provider
        turn.recorder.note(ReplyAdded(message=own, usage=Usage(), model=model, provider=provider))


async def _end(turn: TurnContext, ending: Ending) -> None:
    if ending.reason != "done":
        await turn.recorder.commit()
    why = INTERRUPTED if ending.reason == "interrupted" else TURN_ENDED
    for call in turn.recorder.transcript.unanswered:
        turn.recorder.note(ToolFinished(result=refuse_call(call, why)))
    if ending.reason == "interrupted":
        _keep_shown_text(turn)
    turn.recorder.note(
        TurnEnded(
            reason=ending.reason,
            usage=turn.usage,
            detail=ending.detail,
            error=ending.error,
        )
    )
    turn.world.kill_point("turn.ending")
    await turn.recorder.commit()
    turn.world.kill_point("turn.ended")


def _keep_shown_text(turn: TurnContext) -> None:
    """Note what the person saw of the reply they interrupted. It shares its commit with the end of
    the turn, so that no resumed turn asks a model to go on from it."""
    text = "".join(turn.shown_text)
    if not text.strip():
        return
    transcript = turn.recorder.transcript
    call = next(reversed(transcript.unsettled.values()), transcript)
    turn.recorder.note(
        ReplyAdded(
            message=AssistantMessage(parts=(Text(text=text),), stop="interrupted"),
            usage=Usage(),
            model=call.model,
            provider=call.provider,
        )
    )
