"""Requests the model's reply of a step, and shortens the request when it exceeds the window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager

from hermes.codec.values import replace
from hermes.core.errors import ContextFull, ProviderError
from hermes.core.events import Compacted
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted, TextDelta
from hermes.core.session_deps import CompactionRequest, TurnContext

# The first notice about a silent model; real time, because somebody waits.
SILENT_SECONDS = 30.0
PASSES = 2
ATTEMPTS = 3
OVERFLOWS = ("context_overflow", "payload_too_large")
# The assumed window shrinks by this factor when a server rejects a request and does not say its
# limit.
_SMALLER = 0.75


async def request_reply(turn: TurnContext, *, text_only: bool) -> Reply:
    """Return the model's reply to the conversation, which is compacted first if necessary. Raise
    ContextFull when it cannot be made to fit."""
    prompt = await _fit_prompt(turn)
    for attempt in range(1, ATTEMPTS + 1):
        # The tools stay, so that the prefix of the request does not change.
        asked = replace(prompt, text_only=True) if text_only else prompt
        turn.meter.begin_reply(turn.stop)
        try:
            return await _stream(turn, asked)
        except ProviderError as error:
            if error.reason not in OVERFLOWS or attempt == ATTEMPTS:
                raise
            if not await _shrink(turn, prompt, error):
                raise
        prompt = _prompt(turn)
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _stream(turn: TurnContext, prompt: Prompt) -> Reply:
    turn.shown_text.clear()
    with announced_silence(turn.recorder.show) as heard:
        return await _read_reply(turn, prompt, heard)


async def _read_reply(turn: TurnContext, prompt: Prompt, heard: Callable[[], None]) -> Reply:
    async with aclosing(turn.provider.reply(prompt)) as parts:
        async for part in parts:
            heard()
            if isinstance(part, Reply):
                turn.shown_text.clear()
                return part
            if not (turn.hooks and turn.hooks.holds_text and isinstance(part, TextDelta)):
                turn.recorder.show(part)
                _remember_shown(turn, part)
            # One read may bring many deltas, and many streams may be active at once.
            await turn.world.pacer.wait()
    raise ProviderError("The model's reply was incomplete; try again.", reason="cut")


@contextmanager
def announced_silence(
    show: Callable[[Notice], None], seconds: float = SILENT_SECONDS
) -> Iterator[Callable[[], None]]:
    """Show a notice whenever nothing has arrived for so long, each time after twice the time.
    Yields the function to call when something arrives."""
    loop = asyncio.get_running_loop()
    since, patience = loop.time(), seconds
    timer: asyncio.TimerHandle

    def heard() -> None:
        nonlocal since, patience
        since, patience = loop.time(), seconds

    def check() -> None:
        nonlocal patience, timer
        silent = loop.time() - since
        if silent >= patience:
            text = f"The model has sent nothing for {silent:.0f} s; still waiting."
            show(Notice(text=text, kind="wait"))
            patience *= 2
        timer = loop.call_at(since + patience, check)

    timer = loop.call_at(since + patience, check)
    try:
        yield heard
    finally:
        timer.cancel()


def _remember_shown(turn: TurnContext, part: Delta) -> None:
    if isinstance(part, TextDelta):
        turn.shown_text.append(part.text)
    elif isinstance(part, Restarted):
        turn.shown_text.clear()


async def _fit_prompt(turn: TurnContext) -> Prompt:
    prompt, engine = _prompt(turn), turn.engine
    transcript = turn.recorder.transcript
    if engine is None:
        return prompt
    for _ in range(PASSES):
        if not engine.due(transcript, prompt, turn.window):
            return prompt
        # The summary refers to older messages by their record numbers, which they have only now.
        await turn.recorder.commit()
        request = CompactionRequest(window=turn.window)
        compacted = await engine.compact(transcript, prompt, request, turn.meter)
        if compacted is None:
            break
        apply_compaction(turn, compacted)
        prompt = _prompt(turn)
    if not engine.fits(transcript, prompt, turn.window):
        raise ContextFull(
            f"This conversation no longer fits into the model's {turn.window:,} tokens, even after "
            "compaction; start another one with /new, or switch to a larger model."
        )
    return prompt


async def _shrink(turn: TurnContext, prompt: Prompt, error: ProviderError) -> bool:
    """Shorten the request after the server rejected it as too long. Return whether it is shorter
    now."""
    if turn.engine is None:
        return False
    is_news = error.limit is not None and error.limit < turn.window
    turn.window = error.limit if is_news and error.limit else int(turn.window * _SMALLER)
    await turn.recorder.commit()
    request = CompactionRequest(window=turn.window, cause="overflow")
    transcript = turn.recorder.transcript
    compacted = await turn.engine.compact(transcript, prompt, request, turn.meter)
    if compacted is None:
        return False
    apply_compaction(turn, compacted)
    return True


def apply_compaction(turn: TurnContext, compacted: Compacted) -> None:
    """Apply a compaction to what the model sees. It is committed with the booking of the next
    call."""
    turn.world.kill_point("compaction.made")
    turn.recorder.note(compacted)
    turn.recorder.apply_pending()
    turn.services.on_compaction()
    turn.result_limiter.reset()
    turn.recorder.show(Notice(text=describe_compaction(compacted)))


def describe_compaction(compacted: Compacted) -> str:
    """Return a sentence that tells the person what the compaction did."""
    before, after = compacted.tokens_before, compacted.tokens_after
    how = "summarised" if compacted.summary else "shortened"
    return (
        f"Earlier messages were {how}: about {before:,} tokens became {after:,}. "
        "Nothing is lost; the originals can be recalled."
    )


def _prompt(turn: TurnContext) -> Prompt:
    return turn.view(turn.recorder.transcript)
