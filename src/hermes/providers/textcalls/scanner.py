"""Splits a streamed reply into text and calls; call markup is never shown."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from hermes.codec.values import JsonObject
from hermes.core.prompt import CallNamed, TextDelta
from hermes.providers.textcalls.attempts import (
    CallAttempt,
    CallPosition,
    OpenerIndex,
    OpenerMatch,
    TextContext,
)
from hermes.providers.textcalls.malformed import (
    broken_call,
    fit_call,
    is_malformed_call,
    marked_styles,
    repair_calls,
    split_at_closer,
)
from hermes.providers.textcalls.parsing import CallStyle, NoCall, RawCall
from hermes.providers.textcalls.validation import OfferedTools
from hermes.providers.wire.reasoning_tags import TAGS
from hermes.providers.wire.reply_builder import INCOMPLETE

# A character that shows that a sentence continues.
_CONTINUATIONS = ",.;:)]}`'\"”’»"


class TextCall(NamedTuple):
    """A call. `broken` tells why it cannot run."""

    name: str
    arguments: JsonObject
    broken: str = ""


class CallBlock(NamedTuple):
    """Calls that were written together."""

    style: CallStyle
    text: str  # their markup
    calls: tuple[TextCall, ...]
    position: CallPosition
    named: bool  # the first call was already announced

    def is_meant(self, gap: str, ahead: str) -> bool:
        """Return whether marked calls are real calls, judging by the white space and the text after
        them; "" is the end of the reply."""
        if not self.position.boundary:
            return not ahead and self.position.announced
        return not ahead or "\n" in gap or not (ahead[0].islower() or ahead[0] in _CONTINUATIONS)


_THOUGHT_ENDS = "|".join(f"</{tag}>" for tag in TAGS)
# End-of-turn tokens that some servers let through.
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "</s>")

Piece = TextDelta | CallNamed
ScanStep = Generator[Piece, None, bool]
"""Yields what may be shown and returns whether more can be done with the text so far."""


class CallScanner:
    """Finds calls in the text of one reply and returns what may be shown now. `parts` is the reply
    once it is finished. Four states: searching for a call, reading one, waiting for what follows
    it, or waiting for the end of a reply with a malformed call."""

    def __init__(self, offer: OfferedTools, openers: OpenerIndex, trusted: frozenset[str]) -> None:
        self._offer = offer
        self._openers = openers
        self._trusted = trusted
        self._prose = TextContext()
        self._rest = ""
        self._attempt: CallAttempt | None = None
        self._malformed: CallAttempt | None = None
        self._blocks: list[CallBlock] = []
        self._parts: list[list[str] | TextCall] = []
        self._text: list[str] | None = None
        self._gap = ""
        self._closers: set[str] = set()
        self._after: list[str] = []
        self._ended = False
        self._whole = True
        self._mode: Literal["listening", "spoiled", "muted"] = "listening"
        self.echoes: list[str] = []

    @property
    def parts(self) -> list[str | TextCall]:
        return ["".join(part) if isinstance(part, list) else part for part in self._parts]

    @property
    def calls(self) -> list[TextCall]:
        return [part for part in self._parts if isinstance(part, TextCall)]

    @property
    def held_text(self) -> str:
        """Text that arrived but is not shown, because it may belong to a call."""
        blocks = "".join(block.text for block in self._blocks)
        attempt = self._attempt or self._malformed
        return self._gap + blocks + (attempt.text if attempt else "") + self._rest

    @property
    def is_thought(self) -> bool:
        """Text after a call contains the end of reasoning, so the call is part of reasoning."""
        return re.search(_THOUGHT_ENDS, "".join(self._after), re.IGNORECASE) is not None

    @property
    def is_misread(self) -> bool:
        """Text after a call contains the end of a call, so a call was split wrongly."""
        after = "".join(self._after)
        return any(closer in after for closer in self._closers)

    def feed(self, text: str) -> list[Piece]:
        if self._mode == "muted":
            return []
        if self._malformed is not None:
            self._malformed.add(text)
            return []
        if self._attempt is None:
            self._rest += text
        elif not self._attempt.add(text):
            return list(self._announce(self._attempt))
        return list(self._run())

    def finish(self, *, whole: bool) -> list[Piece]:
        """End the reply. In an incomplete reply, a started call is broken."""
        self._ended = True
        self._whole = whole
        if self._attempt is not None:
            self._attempt.tape.ended = True
        pieces = list(self._run())
        if self._malformed is not None:
            pieces += self._end_malformed(self._malformed)
        return pieces

    def _run(self) -> Iterator[Piece]:
        going = True
        while going:
            if self._malformed is not None:
                return
            if self._attempt is not None:
                going = yield from self._read(self._attempt)
            elif self._blocks:
                going = yield from self._decide()
            else:
                going = yield from self._scan()

    def _scan(self) -> ScanStep:
        text, self._rest = self._rest, ""
        opening = None
        if text and self._mode == "listening":
            opening = self._openers.find(text, at_line_start=self._prose.at_line_start)
        if opening is None or (self._ended and not opening.styles):
            yield from self._say(text)
            return False
        yield from self._say(text[: opening.at])
        self._rest = text[opening.at :]
        if not opening.styles:
            return False
        if self._prose.in_code or self._prose.in_quotes or not self._begin(opening):
            self._rest = self._rest[len(opening.opener) :]
            yield from self._say(opening.opener)
        return True

    def _begin(self, opening: OpenerMatch) -> bool:
        """Start to read a possible call; return False if it cannot be meant as one."""
        position = CallPosition.after(self._prose)
        styles = tuple(style for style in opening.styles if position.allows(style, self._trusted))
        if not styles:
            return False
        self._attempt = CallAttempt(self._rest, opening.opener, styles, position, self._offer)
        self._rest = ""
        if self._ended:
            self._attempt.tape.ended = True
        return True

    def _read(self, attempt: CallAttempt) -> ScanStep:
        try:
            found = attempt.advance()
        except NoCall:
            self._attempt = None
            yield from self._give_up(attempt)
            return True
        if found is None:
            yield from self._announce(attempt)
            return False
        self._attempt = None
        style, raws = found
        text, self._rest = attempt.text[: attempt.tape.at], attempt.text[attempt.tape.at :]
        calls: tuple[TextCall, ...] = ()
        if not attempt.position.vetoed and (style.marked or self._knows_all(raws)):
            calls = tuple(TextCall(*fit_call(self._offer, raw)) for raw in raws)
        if calls:
            self._blocks.append(CallBlock(style, text, calls, attempt.position, attempt.named))
        else:
            yield from self._release()
            yield from self._say(text, whole=True)
        return True

    def _knows_all(self, raws: tuple[RawCall, ...]) -> bool:
        names = (self._offer.strip_namespace(raw.name) for raw in raws)
        return all(map(self._offer.knows, names))

    def _give_up(self, attempt: CallAttempt) -> Iterator[Piece]:
        """End an attempt that cannot be read: it is malformed or text. Markup inside a failed call
        is part of an argument."""
        if not self._whole and attempt.tape.begun and (name := attempt.tool_name):
            yield from self._commit()
            yield from self._add(TextCall(name, {}, INCOMPLETE), named=attempt.named)
            return
        if is_malformed_call(attempt):
            self._malformed = attempt
            return
        yield from self._release()
        if attempt.tape.begun:
            self._mode = "spoiled"
        self._rest = attempt.text[len(attempt.opener) :]
        yield from self._say(attempt.opener)

    def _end_malformed(self, attempt: CallAttempt) -> Iterator[Piece]:
        """Decide at the end of the reply whether a malformed call was meant."""
        self._malformed = None
        attempt.tape.ended = True
        markup, after = split_at_closer(attempt)
        ahead = after.lstrip()
        style = next(iter(marked_styles(attempt)), attempt.styles[0])
        block = CallBlock(style, markup, (), attempt.position, attempt.named)
        if not block.is_meant(after[: len(after) - len(ahead)], ahead) or not (
            is_malformed_call(attempt)
        ):
            yield from self._release()
            yield from self._say(attempt.text)
            return
        calls: tuple[TextCall, ...] = ()
        with suppress(NoCall):
            raws = repair_calls(markup, attempt)
            calls = tuple(TextCall(*fit_call(self._offer, raw)) for raw in raws)
        if not calls:
            name, why = broken_call(markup, attempt, whole=self._whole)
            calls = (TextCall(name, {}, why),)
        self._blocks.append(block._replace(calls=calls))
        yield from self._commit()

    def _decide(self) -> ScanStep:
        """Decide from the following text whether the calls are meant."""
        style = self._blocks[-1].style
        ahead = self._rest.lstrip()
        gap = self._rest[: len(self._rest) - len(ahead)]
        if not ahead and not self._ended:
            return False
        again = tuple(c for c in style.closers if self._blocks[-1].text.endswith(c))
        for token in (*again, *_TURN_ENDS):
            if ahead.startswith(token):
                self._swallow(gap + token)
                return True
            if ahead and not self._ended and token.startswith(ahead):
                return False
        if style.ends and ahead and style.ends.startswith(ahead[: len(style.ends)]):
            if len(ahead) < len(style.ends) and not self._ended:
                return False
            # The model continues with an invented result: that is neither shown nor run.
            self._mode, self._rest = "muted", ""
            yield from self._commit()
            return False
        if style.marked:
            meant = self._blocks[-1].is_meant(gap, ahead)
        else:
            opening = self._openers.find(ahead, at_line_start=True) if ahead else None
            if opening is not None and opening.at == 0:
                if not opening.styles and not self._ended:
                    return False
                if opening.styles:
                    self._swallow(gap)
                    if self._begin(opening):
                        return True
            meant = not ahead
        yield from self._commit() if meant else self._release()
        return bool(self._rest)

    def _swallow(self, text: str) -> None:
        """Move text from behind the newest block into it."""
        last = self._blocks[-1]
        self._blocks[-1] = last._replace(text=last.text + text)
        self._rest = self._rest[len(text) :]

    def _commit(self) -> Iterator[Piece]:
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            self._closers.update(block.style.closers)
            self.echoes.append(block.text.strip())
            for n, call in enumerate(block.calls):
                yield from self._add(call, named=block.named and n == 0)

    def _add(self, call: TextCall, *, named: bool) -> Iterator[Piece]:
        self._parts.append(call)
        self._text = None
        self._gap = ""
        self._prose.start_line()
        if not named:
            yield CallNamed(name=call.name)

    def _release(self) -> Iterator[Piece]:
        """Turn waiting calls into text."""
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            yield from self._say(block.text, whole=True)

    def _announce(self, attempt: CallAttempt) -> Iterator[Piece]:
        """Announce the tool name once, as soon as it is clear."""
        if not attempt.named and (name := attempt.tool_name):
            attempt.named = True
            yield CallNamed(name=name)

    def _say(self, text: str, *, whole: bool = False) -> Iterator[Piece]:
        """Emit visible text. `whole` means that the text is complete call markup."""
        if not text:
            return
        self._prose.add(text)
        if self.echoes and not whole:
            self._after.append(text)
        if self._text is None:
            # White space alone is not part of a reply: it waits for text.
            text = self._gap + text
            self._gap = text if text.isspace() else ""
            if self._gap:
                return
            self._text = []
            self._parts.append(self._text)
        self._text.append(text)
        yield TextDelta(text=text)
