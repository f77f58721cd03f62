"""Makes the request of a step, and makes it smaller when the model's window does not hold it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.values import replace
from hermes.core.errors import ContextFull, ProviderError
from hermes.core.events import Compacted
from hermes.core.prompt import Notice, Prompt, Reply
from hermes.core.turn import Occasion, Turn

PASSES = 2
ATTEMPTS = 3
OVERFLOWS = ("context_overflow", "payload_too_large")
# How much smaller a window is taken to be that was too small and is not told.
_SMALLER = 0.75


async def reply_within(
    turn: Turn, ask: Callable[[Turn, Prompt], Awaitable[Reply]], *, words_only: bool
) -> Reply:
    """The answer to the conversation as it is, or as it is once it fits. ContextFull when it
    cannot be made to fit."""
    prompt = await _fitting(turn)
    for attempt in range(1, ATTEMPTS + 1):
        # The tools stay, so that the beginning of the request does too.
        asked = replace(prompt, words_only=True) if words_only else prompt
        turn.meter.begin_reply(turn.stop)
        try:
            return await ask(turn, asked)
        except ProviderError as error:
            if error.reason not in OVERFLOWS or attempt == ATTEMPTS:
                raise
            if not await _shrunk(turn, prompt, error):
                raise
        prompt = _prompt(turn)
    raise AssertionError("every attempt returns or raises")


async def _fitting(turn: Turn) -> Prompt:
    prompt, engine = _prompt(turn), turn.engine
    transcript = turn.recorder.transcript
    if engine is None:
        return prompt
    for _ in range(PASSES):
        if not engine.due(transcript, prompt, turn.window):
            return prompt
        # What is told about older messages names them by their numbers, which they have then.
        await turn.recorder.commit()
        occasion = Occasion(window=turn.window)
        compacted = await engine.compact(transcript, prompt, occasion, turn.meter)
        if compacted is None:
            break
        adopt(turn, compacted)
        prompt = _prompt(turn)
    if not engine.fits(transcript, prompt, turn.window):
        raise ContextFull(
            f"This conversation does not fit into the model's {turn.window:,} tokens any more, "
            "however it is shortened; /new begins another one, or switch to a larger model."
        )
    return prompt


async def _shrunk(turn: Turn, prompt: Prompt, error: ProviderError) -> bool:
    """The server says that it was too much: whether it is less now."""
    if turn.engine is None:
        return False
    is_news = error.limit is not None and error.limit < turn.window
    turn.window = error.limit if is_news and error.limit else int(turn.window * _SMALLER)
    await turn.recorder.commit()
    occasion = Occasion(window=turn.window, cause="overflow")
    transcript = turn.recorder.transcript
    compacted = await turn.engine.compact(transcript, prompt, occasion, turn.meter)
    if compacted is None:
        return False
    adopt(turn, compacted)
    return True


def adopt(turn: Turn, compacted: Compacted) -> None:
    """Let the model see this from now on. It is committed with the booking of the next call."""
    turn.world.reach("compaction.made")
    turn.recorder.note(compacted)
    turn.recorder.foresee()
    turn.kept.out_of_view()
    turn.shelf.cleared()
    turn.recorder.show(Notice(text=told(compacted)))


def told(compacted: Compacted) -> str:
    """For the person: what was done."""
    before, after = compacted.tokens_before, compacted.tokens_after
    how = "summarised" if compacted.summary else "shortened"
    return (
        f"Earlier messages were {how}: about {before:,} tokens became {after:,}. "
        "Nothing is lost; the originals can be recalled."
    )


def _prompt(turn: Turn) -> Prompt:
    return turn.view(turn.recorder.transcript)
