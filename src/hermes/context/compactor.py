"""Compacts a conversation: prunes first, then summarises the older part."""

from __future__ import annotations

import logging

from hermes.codec.values import replace
from hermes.context.block import (
    SEARCH_TOOL,
    Carried,
    current_request,
    files_seen,
    fitting_block,
    names_in_use,
    open_todos,
    standing_rules,
    tools_found,
)
from hermes.context.budget import (
    CHARS_PER_TOKEN,
    LEAST_SUMMARY,
    EngineDeps,
    SizeMonitor,
    TokenBudget,
    messages_tokens,
)
from hermes.context.pruning import prune, shrink
from hermes.context.summary import clean_summary, local_notes, summary_prompt
from hermes.core.errors import HermesError, ProviderError
from hermes.core.events import Compacted
from hermes.core.messages import Message, ToolMessage, UserMessage, user_says
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import CompactionRequest

log = logging.getLogger(__name__)

OWN_WORDS = "hermes"
COOL_SECONDS = 600.0
COOL_SECONDS_PASSING = 60.0
_PASSING = ("timeout", "overloaded", "server_error", "rate_limit", "upstream_rate_limit", "cut")


class Compactor:
    """For one session. Its only state is the cool-down after a failed summary."""

    def __init__(self, means: EngineDeps, watch: SizeMonitor) -> None:
        self._means = means
        self._rules = means.rules
        self._watch = watch
        self._gauge = watch.gauge
        self._cool_until = 0.0

    async def compact(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        room = self._watch.budget(transcript, prompt, occasion.window)
        shortened = self._prune(transcript, prompt, occasion)
        size = self._size(transcript, prompt, shortened)
        cut = self._cut(transcript, prompt, room, occasion)
        if cut and self._wants_summary(shortened, size, room):
            notes = await self._notes(transcript, cut, room, occasion, meter)
            # Without a summary, pruning suffices while it stays below the threshold.
            if notes or not (self._rules.abort_on_failure or size < room.threshold):
                shortened = self._with_summary(transcript, prompt, occasion, cut, notes)
            elif size > room.limit:
                # Truncating messages would lose what a summary should keep.
                return None
        done = self._finish(transcript, prompt, shortened, room)
        if done is None:
            return None
        return replace(done, system=await self._means.renew(transcript, occasion.window))

    def preview(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest
    ) -> Compacted | None:
        room = self._watch.budget(transcript, prompt, occasion.window)
        shortened = self._prune(transcript, prompt, occasion)
        if cut := self._cut(transcript, prompt, room, occasion):
            notes = "x" * (self._summary_tokens(transcript, cut, room) * CHARS_PER_TOKEN)
            shortened = self._with_summary(transcript, prompt, occasion, cut, notes)
        return self._finish(transcript, prompt, shortened, room)

    def _prune(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest
    ) -> Compacted:
        """Keeps the existing block and the tail, and prunes the messages between."""
        room = self._watch.budget(transcript, prompt, occasion.window)
        newest = transcript.compactions[-1] if transcript.compactions else None
        summarised, upto = (newest.summarised, newest.upto) if newest else (0, 0)
        tail = self._tail_tokens(transcript, prompt, room.content // 3, occasion)
        upto = max(upto, self._tail(transcript, tail, occasion.keep, least=summarised))
        block = newest.head[:1] if newest and summarised else ()
        chars = room.request * CHARS_PER_TOKEN
        lines = prune(transcript.messages[summarised:upto], transcript.number_of, user_chars=chars)
        return _compaction(occasion, upto=upto, head=(*block, *lines), summarised=summarised)

    def _wants_summary(self, shortened: Compacted, size: int, room: TokenBudget) -> bool:
        """Returns whether a summary would gain enough beyond pruning."""
        if shortened.cause != "threshold" or size > room.limit:
            return True
        lines = shortened.head[1:] if shortened.summarised else shortened.head
        return size > room.content and messages_tokens(lines) > (room.content - room.tail) // 10

    def _cut(
        self, transcript: Transcript, prompt: Prompt, room: TokenBudget, occasion: CompactionRequest
    ) -> int:
        """Returns how many messages to summarise; 0 when there are no new ones."""
        before = transcript.compactions[-1].summarised if transcript.compactions else 0
        tail = self._tail_tokens(transcript, prompt, room.tail, occasion)
        cut = self._tail(transcript, tail, occasion.keep, least=before)
        return cut if cut > before else 0

    def _tail_tokens(
        self, transcript: Transcript, prompt: Prompt, tokens: int, occasion: CompactionRequest
    ) -> int:
        """Limits the tail; an explicit request always leaves something to compact."""
        if occasion.cause == "threshold":
            return tokens
        spoken = self._gauge.request_tokens(transcript, prompt) - self._gauge.fixed_tokens(prompt)
        return min(tokens, spoken // 4)

    def _tail(self, transcript: Transcript, tokens: int, keep: int, *, least: int) -> int:
        """Returns where the unchanged tail begins; never between a call and its result. `keep`
        exchanges stay if given."""
        messages = transcript.messages
        if keep:
            starts = [start for start in transcript.turn_starts if start >= least]
            return starts[-keep] if len(starts) >= keep else least
        start, protected = len(messages), self._rules.protect_last
        while start > least:
            size = self._gauge.range_tokens(messages, start - 1, len(messages))
            count = len(messages) - start
            if size > tokens and not (count < protected and size <= tokens * 3 // 2):
                break
            start -= 1
        start = min(start, max(least, len(messages) - 1))
        while start > least and isinstance(messages[start], ToolMessage):
            start -= 1
        return start

    def _summary_tokens(self, transcript: Transcript, cut: int, room: TokenBudget) -> int:
        """Limits a summary to a fifth of what it covers."""
        told = self._gauge.range_tokens(transcript.messages, 0, cut)
        return max(LEAST_SUMMARY, min(room.summary, told // 5))

    async def _notes(
        self,
        transcript: Transcript,
        cut: int,
        room: TokenBudget,
        occasion: CompactionRequest,
        meter: Meter,
    ) -> str:
        """Asks a model for a summary; "" when that fails."""
        if self._means.clock.monotonic() < self._cool_until and occasion.cause != "asked":
            return ""
        known = next((c for c in reversed(transcript.compactions) if c.summary), None)
        part = tuple(transcript.messages[known.summarised if known else 0 : cut])
        asked = summary_prompt(
            part,
            transcript.number_of,
            before=known.summary if known else "",
            topic=occasion.topic,
            hints=await self._means.hints(part),
            tokens=room.limit,
            most=(most := self._summary_tokens(transcript, cut, room)),
        )
        words = user_says(self._means.redact(asked.messages[0].text))  # type: ignore[union-attr]
        try:
            reply = await self._means.summarise(replace(asked, messages=(words,)), meter)
        except HermesError as error:
            self._note_failure(error)
            return ""
        notes = clean_summary(reply.message.text, most)
        if not notes:
            self._note_failure(ProviderError("The summary was empty.", reason="cut"))
        return notes

    def _note_failure(self, error: HermesError) -> None:
        passing = isinstance(error, ProviderError) and error.reason in _PASSING
        seconds = COOL_SECONDS_PASSING if passing else COOL_SECONDS
        self._cool_until = self._means.clock.monotonic() + seconds
        log.warning("no summary", extra={"why": str(error)})

    def _with_summary(
        self,
        transcript: Transcript,
        prompt: Prompt,
        occasion: CompactionRequest,
        cut: int,
        notes: str,
    ) -> Compacted:
        room = self._watch.budget(transcript, prompt, occasion.window)
        text = notes or local_notes(transcript.messages[:cut], transcript.number_of, room.summary)
        carried = self._collect_carried(transcript, prompt, cut, text)
        most = (room.threshold - self._gauge.fixed_tokens(prompt)) * 6 // 10
        block = user_says(fitting_block(carried, room, most), origin=OWN_WORDS)
        return _compaction(occasion, upto=cut, head=(block,), summarised=cut, summary=notes)

    def _collect_carried(
        self, transcript: Transcript, prompt: Prompt, cut: int, notes: str
    ) -> Carried:
        number, older = transcript.number_of, transcript.messages[:cut]
        files = files_seen(transcript, cut)
        request = [m for m in current_request(transcript) if any(m is old for old in older)]
        rules = standing_rules(older)
        first = next((m for m in older if isinstance(m, UserMessage) and m.origin == "user"), None)
        return Carried(
            session_id=self._means.session_id,
            recallable=any(spec.name == SEARCH_TOOL for spec in prompt.tools),
            last_number=number(older[-1]) if older else 0,
            cwd=self._means.cwd,
            rules=tuple((number(each.message), each.text) for each in rules if each.strong),
            wishes=tuple((number(each.message), each.text) for each in rules if not each.strong),
            summary=notes,
            first=(number(first), first.text) if first and first not in request else (0, ""),
            todos=tuple(open_todos(transcript)),
            files=tuple(files),
            names=tuple(names_in_use(older[-400:], [seen.path for seen in files])),
            tools=tuple(tools_found(transcript, cut)),
            request=tuple((number(message), message.text) for message in request),
        )

    def _finish(
        self, transcript: Transcript, prompt: Prompt, shortened: Compacted, room: TokenBudget
    ) -> Compacted | None:
        """Adds sizes and shrinks further where needed; None for no gain."""
        before = self._gauge.request_tokens(transcript, prompt)
        size = self._size(transcript, prompt, shortened)
        if size > room.limit:
            spare = room.limit - self._gauge.fixed_tokens(prompt)
            shortened = shrink(shortened, transcript, spare)
            size = self._size(transcript, prompt, shortened)
        if before - size < self._least_gain(prompt, before, shortened):
            return None
        scale = self._gauge.scale(transcript, prompt)
        return replace(
            shortened,
            tokens_before=int(before * scale),
            tokens_after=int(size * scale),
            scale=scale,
        )

    def _least_gain(self, prompt: Prompt, before: int, shortened: Compacted) -> int:
        """An explicit compaction invalidates caches, so it must save a tenth."""
        if shortened.cause != "asked":
            return 1
        return max(1, (before - self._gauge.fixed_tokens(prompt)) // 10)

    def _size(self, transcript: Transcript, prompt: Prompt, shortened: Compacted) -> int:
        messages = transcript.messages
        rest = self._gauge.range_tokens(messages, shortened.upto, len(messages))
        return self._gauge.fixed_tokens(prompt) + messages_tokens(shortened.head) + rest


def _compaction(
    occasion: CompactionRequest,
    *,
    upto: int,
    head: tuple[Message, ...],
    summarised: int,
    summary: str = "",
) -> Compacted:
    return Compacted(
        upto=upto,
        head=head,
        summarised=summarised,
        summary=summary,
        cause=occasion.cause,
        topic=occasion.topic,
        keep=occasion.keep,
        window=occasion.window,
    )
