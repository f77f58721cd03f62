"""Compacts a conversation: prunes first, then summarises the older part."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import replace
from hermes.context.block import (
    SEARCH_TOOL,
    Carried,
    current_request,
    files_seen,
    fitting_block,
    names_in_use,
    open_todos,
    searched_tools,
    standing_rules,
)
from hermes.context.budget import (
    LEAST_SUMMARY,
    EngineDeps,
    TokenBudget,
    TokenGauge,
    messages_tokens,
)
from hermes.context.pruning import prune, shrink
from hermes.context.summary import clean_summary, local_notes, summary_prompt
from hermes.core.errors import HermesError, ProviderError
from hermes.core.events import Compacted
from hermes.core.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    user_says,
)
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript

log = logging.getLogger(__name__)

OWN_WORDS = "hermes"
COOL_SECONDS = 600.0
COOL_SECONDS_PASSING = 60.0
_PASSING = ("timeout", "overloaded", "server_error", "rate_limit", "upstream_rate_limit", "cut")


class _Task(NamedTuple):
    """One compaction."""

    transcript: Transcript
    prompt: Prompt
    request: CompactionRequest
    budget: TokenBudget


class Compactor:
    """Compacts the conversation of one session. Its only state is the cool-down after a failed
    summary."""

    def __init__(self, deps: EngineDeps, gauge: TokenGauge) -> None:
        self._deps = deps
        self._rules = deps.rules
        self._gauge = gauge
        self._cool_until = 0.0

    async def compact(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        task = self._task(transcript, prompt, request)
        budget, shortened = task.budget, self._prune(task)
        size = self._size(task, shortened)
        cut = self._cut(task)
        if cut and self._wants_summary(shortened, size, budget):
            notes = await self._notes(task, cut, meter)
            # Without a summary, pruning suffices while it stays below the threshold.
            if notes or not (self._rules.abort_on_summary_failure or size < budget.threshold):
                shortened = self._with_summary(task, cut, notes)
            elif size > budget.limit:
                # Truncating messages would lose what a summary should keep.
                return None
        done = self._finish(task, shortened)
        if done is None:
            return None
        system, origins = await self._deps.renew(transcript, request.window)
        return replace(done, system=system, origins=origins)

    def preview(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        task = self._task(transcript, prompt, request)
        shortened = self._prune(task)
        if cut := self._cut(task):
            notes = "x" * (self._summary_tokens(task, cut) * CHARS_PER_TOKEN)
            shortened = self._with_summary(task, cut, notes)
        return self._finish(task, shortened)

    def _task(self, transcript: Transcript, prompt: Prompt, request: CompactionRequest) -> _Task:
        budget = self._gauge.budget(transcript, prompt, request.window, self._rules)
        return _Task(transcript, prompt, request, budget)

    def _prune(self, task: _Task) -> Compacted:
        """Keep the existing block and the tail, and prune the messages between."""
        transcript, request = task.transcript, task.request
        newest = transcript.compactions[-1] if transcript.compactions else None
        summarised, upto = (newest.summarised, newest.upto) if newest else (0, 0)
        upto = max(upto, self._tail(task, task.budget.content // 3, least=summarised))
        block = newest.head[: _block_size(newest)] if newest else ()
        chars = task.budget.request * CHARS_PER_TOKEN
        lines = prune(transcript.messages[summarised:upto], transcript.number_of, user_chars=chars)
        return _compaction(request, upto=upto, head=(*block, *lines), summarised=summarised)

    def _wants_summary(self, shortened: Compacted, size: int, budget: TokenBudget) -> bool:
        """Return whether a summary would gain enough beyond pruning."""
        if shortened.cause != "threshold" or size > budget.limit:
            return True
        lines = shortened.head[_block_size(shortened) :]
        least = (budget.content - budget.tail) // 10
        return size > budget.content and messages_tokens(lines) > least

    def _cut(self, task: _Task) -> int:
        """Return how many messages to summarise; 0 when there are no new ones."""
        compactions = task.transcript.compactions
        before = compactions[-1].summarised if compactions else 0
        cut = self._tail(task, task.budget.tail, least=before)
        return cut if cut > before else 0

    def _tail(self, task: _Task, tokens: int, *, least: int) -> int:
        """Return the index where the unchanged tail of about `tokens` begins; it never separates a
        call from its result. An explicit request keeps the number of exchanges that it names, and
        always leaves something to compact."""
        messages, keep = task.transcript.messages, task.request.keep
        if keep:
            starts = [start for start in task.transcript.turn_starts if start >= least]
            return starts[-keep] if len(starts) >= keep else least
        if task.request.cause != "threshold":
            whole = self._gauge.request_tokens(task.transcript, task.prompt)
            tokens = min(tokens, (whole - self._gauge.fixed_tokens(task.prompt)) // 4)
        start, protected = len(messages), self._rules.protect_last_n
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

    def _summary_tokens(self, task: _Task, cut: int) -> int:
        """Return the maximum size of a summary: a fifth of what it covers."""
        covered = self._gauge.range_tokens(task.transcript.messages, 0, cut)
        return max(LEAST_SUMMARY, min(task.budget.summary, covered // 5))

    async def _notes(self, task: _Task, cut: int, meter: Meter) -> str:
        """Ask a model for a summary; "" when that fails."""
        transcript, request = task.transcript, task.request
        if self._deps.clock.monotonic() < self._cool_until and request.cause != "asked":
            return ""
        known = next((c for c in reversed(transcript.compactions) if c.summary), None)
        part = tuple(transcript.messages[known.summarised if known else 0 : cut])
        most = self._summary_tokens(task, cut)
        asked = summary_prompt(
            part,
            transcript.number_of,
            before=known.summary if known else "",
            topic=request.topic,
            hints=await self._deps.hints(part),
            tokens=task.budget.limit,
            most=most,
        )
        redacted = user_says(self._deps.redact(asked.messages[0].text))  # type: ignore[union-attr]
        try:
            reply = await self._deps.summarise(replace(asked, messages=(redacted,)), meter)
            if notes := clean_summary(reply.message.text, most):
                return notes
            raise ProviderError("The summary was empty.", reason="cut")
        except HermesError as error:
            passing = isinstance(error, ProviderError) and error.reason in _PASSING
            seconds = COOL_SECONDS_PASSING if passing else COOL_SECONDS
            self._cool_until = self._deps.clock.monotonic() + seconds
            log.warning("no summary", extra={"why": str(error)})
            return ""

    def _with_summary(self, task: _Task, cut: int, notes: str) -> Compacted:
        transcript, prompt, request, budget = task
        number, older = transcript.number_of, transcript.messages[:cut]
        files = files_seen(transcript, cut)
        current = [m for m in current_request(transcript) if any(m is old for old in older)]
        rules = standing_rules(older)
        protected = self._protected(task, older)
        first = next((m for m in older if isinstance(m, UserMessage) and m.origin == "user"), None)
        if first in protected:
            first = None
        carried = Carried(
            session_id=self._deps.session_id,
            recallable=any(spec.name == SEARCH_TOOL for spec in prompt.tools),
            last_number=number(older[-1]) if older else 0,
            cwd=self._deps.cwd,
            rules=tuple((number(each.message), each.text) for each in rules if each.strong),
            possible_rules=tuple(
                (number(each.message), each.text) for each in rules if not each.strong
            ),
            summary=notes or local_notes(older, number, budget.summary),
            first=(number(first), first.text) if first and first not in current else (0, ""),
            todos=tuple(open_todos(transcript)),
            files=tuple(files),
            names=tuple(names_in_use(older[-400:], [seen.path for seen in files])),
            tools=tuple(searched_tools(transcript, cut)),
            request=tuple((number(message), message.text) for message in current),
        )
        most = (budget.threshold - self._gauge.fixed_tokens(prompt)) * 6 // 10
        block = user_says(fitting_block(carried, budget, most), origin=OWN_WORDS)
        head = (*protected, block)
        return _compaction(request, upto=cut, head=head, summarised=cut, summary=notes)

    def _protected(self, task: _Task, older: Sequence[Message]) -> tuple[Message, ...]:
        """Return the first messages, which the first compaction keeps, as far as they fit."""
        if any(each.summarised for each in task.transcript.compactions):
            return ()
        kept = list(older[: self._rules.protect_first_n])
        own = (n for n, each in enumerate(kept) if getattr(each, "origin", "") == OWN_WORDS)
        del kept[next(own, len(kept)) :]
        # They must not take what compaction is to gain.
        most = min(task.budget.tail // 2, messages_tokens(older) // 8)
        while kept and (
            messages_tokens(kept) > most
            or (isinstance(kept[-1], AssistantMessage) and kept[-1].calls)
        ):
            kept.pop()
        return tuple(kept)

    def _finish(self, task: _Task, shortened: Compacted) -> Compacted | None:
        """Add sizes and shrink further where needed; return None for no gain."""
        transcript, prompt, _, budget = task
        before = self._gauge.request_tokens(transcript, prompt)
        fixed = self._gauge.fixed_tokens(prompt)
        size = self._size(task, shortened)
        if size > budget.limit:
            shortened = shrink(shortened, transcript, budget.limit - fixed)
            size = self._size(task, shortened)
        # An explicit compaction invalidates caches, so it must save a tenth.
        if before - size < max(1, (before - fixed) // 10 if shortened.cause == "asked" else 0):
            return None
        scale = self._gauge.scale(transcript, prompt)
        return replace(
            shortened,
            tokens_before=int(before * scale),
            tokens_after=int(size * scale),
            scale=scale,
        )

    def _size(self, task: _Task, shortened: Compacted) -> int:
        messages = task.transcript.messages
        rest = self._gauge.range_tokens(messages, shortened.upto, len(messages))
        return self._gauge.fixed_tokens(task.prompt) + messages_tokens(shortened.head) + rest


def _block_size(compaction: Compacted) -> int:
    """Return how many messages of its head are the summary and the protected ones before it."""
    if not compaction.summarised:
        return 0
    origins = (getattr(each, "origin", "") for each in compaction.head)
    return 1 + next((n for n, origin in enumerate(origins) if origin == OWN_WORDS), 0)


def _compaction(
    request: CompactionRequest,
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
        cause=request.cause,
        topic=request.topic,
        keep=request.keep,
        window=request.window,
    )
