"""Shortens a conversation: prunes first, then has the older part summarised; rules stay."""

from __future__ import annotations

import logging

from hermes.codec.values import replace
from hermes.context import shrinking, summary
from hermes.context.block import SEARCH_TOOL, Carried, fitting_block
from hermes.context.carried import (
    current_request,
    files_seen,
    names_in_use,
    open_todos,
    tools_found,
)
from hermes.context.pruning import pruned
from hermes.context.room import LEAST_SUMMARY, Room
from hermes.context.standing import standing_rules
from hermes.context.tokens import CHARS_PER_TOKEN, all_tokens
from hermes.context.watch import Means, Watch
from hermes.core.errors import HermesError, ProviderError
from hermes.core.events import Compacted
from hermes.core.messages import Message, ToolMessage, UserMessage, user_says
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import Occasion

log = logging.getLogger(__name__)

OWN_WORDS = "hermes"
COOL_SECONDS = 600.0
COOL_SECONDS_PASSING = 60.0
_PASSING = ("timeout", "overloaded", "server_error", "rate_limit", "upstream_rate_limit", "cut")


class Compactor:
    """For one session; remembers only for how long not to ask for summaries after a failure."""

    def __init__(self, means: Means, watch: Watch) -> None:
        self._means = means
        self._rules = means.rules
        self._watch = watch
        self._gauge = watch.gauge
        self._cool_until = 0.0

    async def compact(
        self, transcript: Transcript, prompt: Prompt, occasion: Occasion, meter: Meter
    ) -> Compacted | None:
        room = self._watch.room(transcript, prompt, occasion.window)
        shortened = self._prune(transcript, prompt, occasion)
        size = self._size(transcript, prompt, shortened)
        cut = self._cut(transcript, prompt, room, occasion)
        if cut and self._wants_summary(shortened, size, room):
            notes = await self._notes(transcript, cut, room, occasion, meter)
            # Where no summary comes, pruning alone will do as long as it does.
            if notes or not (self._rules.abort_on_failure or size < room.threshold):
                shortened = self._summarised(transcript, prompt, occasion, cut, notes)
            elif size > room.limit:
                # Cutting messages short would lose what a summary was wanted to keep.
                return None
        done = self._finished(transcript, prompt, shortened, room)
        if done is None:
            return None
        return replace(done, system=await self._means.renew(transcript, occasion.window))

    def preview(
        self, transcript: Transcript, prompt: Prompt, occasion: Occasion
    ) -> Compacted | None:
        room = self._watch.room(transcript, prompt, occasion.window)
        shortened = self._prune(transcript, prompt, occasion)
        if cut := self._cut(transcript, prompt, room, occasion):
            notes = "x" * (self._summary_tokens(transcript, cut, room) * CHARS_PER_TOKEN)
            shortened = self._summarised(transcript, prompt, occasion, cut, notes)
        return self._finished(transcript, prompt, shortened, room)

    def _prune(self, transcript: Transcript, prompt: Prompt, occasion: Occasion) -> Compacted:
        """The block that is there already, the messages after it in fewer words, and a tail."""
        room = self._watch.room(transcript, prompt, occasion.window)
        newest = transcript.compactions[-1] if transcript.compactions else None
        summarised, upto = (newest.summarised, newest.upto) if newest else (0, 0)
        tail = self._tail_tokens(transcript, prompt, room.content // 3, occasion)
        upto = max(upto, self._tail(transcript, tail, occasion.keep, least=summarised))
        block = newest.head[:1] if newest and summarised else ()
        chars = room.request * CHARS_PER_TOKEN
        lines = pruned(transcript.messages[summarised:upto], transcript.number_of, user_chars=chars)
        return _shortened(occasion, upto=upto, head=(*block, *lines), summarised=summarised)

    def _wants_summary(self, shortened: Compacted, size: int, room: Room) -> bool:
        """Pruning is not enough, and there is something to be gained by more."""
        if shortened.cause != "threshold" or size > room.limit:
            return True
        lines = shortened.head[1:] if shortened.summarised else shortened.head
        return size > room.content and all_tokens(lines) > (room.content - room.tail) // 10

    def _cut(self, transcript: Transcript, prompt: Prompt, room: Room, occasion: Occasion) -> int:
        """How many messages to summarise; 0 when there are none besides those that are."""
        before = transcript.compactions[-1].summarised if transcript.compactions else 0
        tail = self._tail_tokens(transcript, prompt, room.tail, occasion)
        cut = self._tail(transcript, tail, occasion.keep, least=before)
        return cut if cut > before else 0

    def _tail_tokens(
        self, transcript: Transcript, prompt: Prompt, tokens: int, occasion: Occasion
    ) -> int:
        """Whoever asks for it wants something to happen, however much room there is."""
        if occasion.cause == "threshold":
            return tokens
        spoken = self._gauge.estimated(transcript, prompt) - self._gauge.fixed(prompt)
        return min(tokens, spoken // 4)

    def _tail(self, transcript: Transcript, tokens: int, keep: int, *, least: int) -> int:
        """Where the newest messages begin that stay as they are: never between a call and its
        result. `keep` exchanges stay if that is asked for."""
        messages = transcript.messages
        if keep:
            starts = [start for start in transcript.turn_starts if start >= least]
            return starts[-keep] if len(starts) >= keep else least
        start, protected = len(messages), self._rules.protect_last
        while start > least:
            size = self._gauge.between(messages, start - 1, len(messages))
            count = len(messages) - start
            if size > tokens and not (count < protected and size <= tokens * 3 // 2):
                break
            start -= 1
        start = min(start, max(least, len(messages) - 1))
        while start > least and isinstance(messages[start], ToolMessage):
            start -= 1
        return start

    def _summary_tokens(self, transcript: Transcript, cut: int, room: Room) -> int:
        """A summary is to be much shorter than what it tells of."""
        told = self._gauge.between(transcript.messages, 0, cut)
        return max(LEAST_SUMMARY, min(room.summary, told // 5))

    async def _notes(
        self, transcript: Transcript, cut: int, room: Room, occasion: Occasion, meter: Meter
    ) -> str:
        """A model's summary, "" when there is none to be had."""
        if self._means.clock.monotonic() < self._cool_until and occasion.cause != "asked":
            return ""
        known = next((c for c in reversed(transcript.compactions) if c.summary), None)
        part = tuple(transcript.messages[known.summarised if known else 0 : cut])
        asked = summary.request(
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
            self._failed(error)
            return ""
        notes = summary.cleaned(reply.message.text, most)
        if not notes:
            self._failed(ProviderError("The summary was empty.", reason="cut"))
        return notes

    def _failed(self, error: HermesError) -> None:
        passing = isinstance(error, ProviderError) and error.reason in _PASSING
        seconds = COOL_SECONDS_PASSING if passing else COOL_SECONDS
        self._cool_until = self._means.clock.monotonic() + seconds
        log.warning("no summary", extra={"why": str(error)})

    def _summarised(
        self, transcript: Transcript, prompt: Prompt, occasion: Occasion, cut: int, notes: str
    ) -> Compacted:
        room = self._watch.room(transcript, prompt, occasion.window)
        text = notes or summary.local_notes(
            transcript.messages[:cut], transcript.number_of, room.summary
        )
        carried = self._carried(transcript, prompt, cut, text)
        most = (room.threshold - self._gauge.fixed(prompt)) * 6 // 10
        block = user_says(fitting_block(carried, room, most), origin=OWN_WORDS)
        return _shortened(occasion, upto=cut, head=(block,), summarised=cut, summary=notes)

    def _carried(self, transcript: Transcript, prompt: Prompt, cut: int, notes: str) -> Carried:
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

    def _finished(
        self, transcript: Transcript, prompt: Prompt, shortened: Compacted, room: Room
    ) -> Compacted | None:
        """With its sizes, and made smaller still where it would not fit; None for no gain."""
        before = self._gauge.estimated(transcript, prompt)
        size = self._size(transcript, prompt, shortened)
        if size > room.limit:
            spare = room.limit - self._gauge.fixed(prompt)
            shortened = shrinking.squeezed(shortened, transcript, spare)
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
        """Whoever asks for it gives up caches for it: a tenth of what was said must go."""
        if shortened.cause != "asked":
            return 1
        return max(1, (before - self._gauge.fixed(prompt)) // 10)

    def _size(self, transcript: Transcript, prompt: Prompt, shortened: Compacted) -> int:
        messages = transcript.messages
        rest = self._gauge.between(messages, shortened.upto, len(messages))
        return self._gauge.fixed(prompt) + all_tokens(shortened.head) + rest


def _shortened(
    occasion: Occasion,
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
