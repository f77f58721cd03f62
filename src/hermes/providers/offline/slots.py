"""The pattern language of requests, and the values of its slots.

    list|show the? {n} <files> <in> {path} -> hidden=yes

A word matches itself, `a|b` either of two, `<name>` any phrase of that class, and `{slot}` a value.
A `?` makes an element optional. After `->` come constant values. A slot may be strict (`{path!}`:
only what looks like a path), quoted (`{text'}`) or the rest of the request (`{text*}`). `{item}` is
a path that was shown before: "it", "the second one". Fillers may occur between elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from hermes.codec.values import Value
from hermes.providers.offline.arithmetic import is_expression
from hermes.providers.offline.language import AssistantLanguage, TextToken, phrase_ends, word_of
from hermes.providers.offline.phrases import PROGRAMS, may_be_command

SlotKind = Literal["path", "number", "range", "glob", "word", "process", "item", "text", "sum"]

# The kind of value of a slot; other names take text.
SLOT_KINDS: dict[str, SlotKind] = {
    "path": "path",
    "to": "path",
    "other": "path",
    "target": "path",
    "parent": "path",
    "folder": "path",
    "item": "item",
    "n": "number",
    "from": "number",
    "upto": "number",
    "range": "range",
    "glob": "glob",
    "program": "word",
    "variable": "word",
    "process": "process",
    "sum": "sum",
}


Mode = Literal["", "strict", "quoted", "rest"]


class PatternElement(Value):
    """One element. `names` are its words, or the name of its class or slot."""

    op: Literal["word", "class", "slot"]
    names: tuple[str, ...]
    optional: bool = False
    slot: SlotKind = "text"
    mode: Mode = ""


class RequestPattern(Value):
    elements: tuple[PatternElement, ...]
    sets: tuple[tuple[str, str], ...] = ()


_MODES: dict[str, Mode] = {"!": "strict", "'": "quoted", "*": "rest"}


@lru_cache(maxsize=4096)
def parse_pattern(text: str) -> RequestPattern:
    wording, _, constants = text.partition(" -> ")
    pairs = tuple(pair.partition("=") for pair in constants.split())
    return RequestPattern(
        elements=tuple(_element(part) for part in wording.split()),
        sets=tuple((name, value) for name, _, value in pairs),
    )


def _element(part: str) -> PatternElement:
    optional = part[-1] == "?"
    part = part.rstrip("?")
    if part[0] == "<":
        return PatternElement(op="class", names=(part,), optional=optional)
    if part[0] != "{":
        return PatternElement(op="word", names=tuple(part.split("|")), optional=optional)
    mode = _MODES.get(part[-2], "")
    name = part[1:-2] if mode else part[1:-1]
    slot = SLOT_KINDS.get(name, "text")
    return PatternElement(op="slot", names=(name,), optional=optional, slot=slot, mode=mode)


MAX_TEXT_TOKENS = 40

# Per word of "the current folder": less than for words that a request requires.
PLACE_GAIN = 1.9
# A bare word as a file name: after "the folder", any word, a word with another meaning.
NOUN_GAIN = 1.0
BARE_GAIN = 0.5
KNOWN_GAIN = 0.2

KNOWN_FILES = frozenset(
    {"makefile", "dockerfile", "readme", "license", "licence", "changelog", "justfile", "procfile"}
)

_RANGE = re.compile(r"(\d{1,9})(?:-|–|\.\.|:)(\d{1,9})")
_ENDING = re.compile(r"\.[^\W\d_]\w{0,9}$")
_COUNTED = re.compile(r"#?(\d{1,3})(?:st|nd|rd|th|\.)?")


def looks_like_file(path: str) -> bool:
    """By its name alone: an extension, or a well-known file name."""
    name = path.rstrip("/").rpartition("/")[2]
    return name.casefold() in KNOWN_FILES or "." in name.strip(".")


class SlotReading(Value):
    """One way to read a slot, up to token `end`. A `reference` points to something mentioned
    before: "it", "there", or a position in a list ("2"; "-1" is the last)."""

    end: int
    value: str
    gain: float
    reference: bool = False


class RequestClause:
    """The tokens of one step with their source text."""

    def __init__(self, language: AssistantLanguage, source: str, tokens: list[TextToken]) -> None:
        self.language = language
        self.source = source
        self.tokens = tokens

    @property
    def text(self) -> str:
        return self.raw(0, len(self.tokens))

    def raw(self, start: int, end: int) -> str:
        """As written; a single quoted token gives its content."""
        tokens = self.tokens[start:end]
        while len(tokens) > 1 and tokens[-1].kind == "mark" and tokens[0].kind == "quoted":
            tokens = tokens[:-1]
        if len(tokens) == 1 and tokens[0].kind == "quoted":
            return tokens[0].text
        return self.source[tokens[0].start : tokens[-1].end] if tokens else ""

    def skippable(self, at: int) -> bool:
        token = self.tokens[at]
        return token.kind == "mark" or token.word in self.language.fillers

    def after_marks(self, at: int) -> int:
        while at < len(self.tokens) and self.tokens[at].kind == "mark":
            at += 1
        return at

    def must_be_composed(self, text: str) -> bool:
        """True for "write documentation to api.md", which does not want that word in the file."""
        if any(token.kind == "quoted" and token.text == text for token in self.tokens):
            return False
        words = [word_of(word.strip(".,;:!?")) for word in text.split()]
        if any(word in self.language.composed for word in (*words[:3], *words[-1:])):
            return True
        # "Dump the database to x.sql" is about a thing; text at the end of the request may start
        # like that.
        said_of = words[:1] and words[0] in self.language.data.definite
        return bool(said_of) and not self.text.endswith(text)

    def readings(
        self, element: PatternElement, at: int, *, careful: bool = False, wary: bool = False
    ) -> Iterator[SlotReading]:
        """With `careful`, a thing ("the meeting") is not taken for a file; with `wary`, neither is
        an everyday word."""
        if at >= len(self.tokens):
            return
        match element.slot:
            case "path":
                readings = self._paths(at, strict=element.mode == "strict")
                for reading in readings:
                    bare = reading.gain <= BARE_GAIN and not reading.reference
                    known = bare and reading.gain <= KNOWN_GAIN
                    if not ((wary and known) or (careful and bare and self._is_a_thing(at))):
                        yield reading
            case "item":
                yield from self._ordinals(at, strict=False)
                yield from self._references(at, strict=True)
            case "number":
                yield from self._numbers(at)
            case "range":
                yield from self._ranges(at)
            case "glob":
                yield from self._globs(at, strict=element.mode == "strict")
            case "word" | "process":
                yield from self._words(at, process=element.slot == "process")
            case "sum":
                yield from self._sums(at)
            case "text":
                yield from self._texts(at, element)

    def _paths(self, at: int, *, strict: bool) -> Iterator[SlotReading]:
        yield from self._references(at, strict=strict)
        yield from self._ordinals(at, strict=strict)
        for end, meaning, _ in phrase_ends(self.language.places, self.tokens, at):
            yield SlotReading(end=end, value=meaning, gain=PLACE_GAIN * (end - at))
        named = self._after_noun(at)
        if named < len(self.tokens):
            yield from self._read_name(at, named, strict=strict)

    def _is_a_thing(self, at: int) -> bool:
        return at > 0 and self.tokens[at - 1].word in self.language.data.definite

    def _references(self, at: int, *, strict: bool) -> Iterator[SlotReading]:
        """Things mentioned or shown before. The single word "there" is usually a filler, so a
        strict slot ignores it; "this" before "folder" is not a reference."""
        for end, meaning, _ in phrase_ends(self.language.references, self.tokens, at):
            single = end == at + 1
            before_noun = end < len(self.tokens) and self._is_one_of(
                end, self.language.data.path_nouns
            )
            if not (single and (before_noun or (strict and meaning == "@there"))):
                yield SlotReading(end=end, value=meaning[1:], gain=1.5, reference=True)

    def _ordinals(self, at: int, *, strict: bool) -> Iterator[SlotReading]:
        number = self._ordinal(self.tokens[at])
        if number is None:
            return
        if at + 1 < len(self.tokens) and self._is_one_of(at + 1, self.language.data.ordinal_nouns):
            yield SlotReading(end=at + 2, value=str(number), gain=3.0, reference=True)
        elif not strict:
            yield SlotReading(end=at + 1, value=str(number), gain=0.4, reference=True)

    def _ordinal(self, token: TextToken) -> int | None:
        if token.word in self.language.data.ordinals:
            return self.language.data.ordinals[token.word]
        found = _COUNTED.fullmatch(token.word)
        return int(found[1]) if found and not token.word.isdigit() else None

    def _after_noun(self, at: int) -> int:
        """Skips "the file called" or "the log file", so that the name comes next."""
        data = self.language.data
        nouns = data.path_nouns + data.named
        if at + 1 < len(self.tokens) and self.tokens[at].word in data.file_types:
            at += self._is_one_of(at + 1, data.path_nouns)
        while at < len(self.tokens) and self._is_one_of(at, nouns):
            at += 1
            while at < len(self.tokens) and self.tokens[at].word in self.language.fillers:
                at += 1
        return at

    def _read_name(self, at: int, named: int, *, strict: bool) -> Iterator[SlotReading]:
        token = self.tokens[named]
        noun = named > at or self._follows_noun(at)
        end = named + 1
        if end < len(self.tokens) and self._is_one_of(end, self.language.data.path_nouns):
            noun, end = True, end + 1
        if self._is_path(token) or (token.kind == "quoted" and (noun or not strict)):
            yield SlotReading(end=end, value=token.text, gain=1.6 if noun else 1.5)
        elif self._may_be_bare(named, noun=noun, strict=strict):
            known = token.word in self.language.known
            gain = NOUN_GAIN if noun else KNOWN_GAIN if known else BARE_GAIN
            yield SlotReading(end=end, value=token.text, gain=gain)

    def _follows_noun(self, at: int) -> bool:
        while at > 0 and self.tokens[at - 1].word in self.language.fillers:
            at -= 1
        return at > 0 and self._is_one_of(at - 1, self.language.data.path_nouns)

    def _is_path(self, token: TextToken) -> bool:
        """By its form: a quoted text only if it looks like a file name."""
        if token.kind == "quoted":
            known = token.text.casefold() in KNOWN_FILES or "/" in token.text
            return "\n" not in token.text and (known or bool(_ENDING.search(token.text)))
        return token.kind == "path" or token.word in KNOWN_FILES

    def _may_be_bare(self, at: int, *, noun: bool, strict: bool) -> bool:
        token = self.tokens[at]
        if token.kind != "word" or token.word in self.language.fillers:
            return False
        if noun:
            named = at > 0 and self._is_one_of(at - 1, self.language.data.named)
            quality = token.word in self.language.qualities
            return named or not (quality or token.word in self.language.data.definite)
        indefinite = at > 0 and self.tokens[at - 1].word in self.language.data.indefinite
        unlike = indefinite or token.word in self.language.sentence_words
        return not strict and not unlike and token.text[0] not in "-+$%&|<>=("

    def _is_one_of(self, at: int, words: tuple[str, ...]) -> bool:
        return self.tokens[at].word in words

    def _numbers(self, at: int) -> Iterator[SlotReading]:
        token = self.tokens[at]
        if token.kind == "number" and token.text.strip("#").isdigit() and len(token.text) < 10:
            yield SlotReading(end=at + 1, value=str(int(token.text.strip("#"))), gain=1.5)
        elif token.word in self.language.data.numbers:
            yield SlotReading(
                end=at + 1, value=str(self.language.data.numbers[token.word]), gain=1.5
            )

    def _ranges(self, at: int) -> Iterator[SlotReading]:
        found = _RANGE.fullmatch(self.tokens[at].text)
        if found:
            yield SlotReading(end=at + 1, value=f"{int(found[1])}-{int(found[2])}", gain=1.5)

    def _globs(self, at: int, *, strict: bool) -> Iterator[SlotReading]:
        token = self.tokens[at]
        if token.kind == "glob" or (token.kind == "quoted" and "*" in token.text):
            yield SlotReading(end=at + 1, value=token.text, gain=1.6)
        elif re.fullmatch(r"\.\w{1,10}", token.text):
            yield SlotReading(end=at + 1, value=f"*{token.text}", gain=1.6)
        elif not strict and token.word in self.language.data.file_types:
            yield SlotReading(end=at + 1, value=self.language.data.file_types[token.word], gain=1.6)

    def _words(self, at: int, *, process: bool) -> Iterator[SlotReading]:
        token = self.tokens[at]
        if process:
            if token.word.startswith("proc_"):
                yield SlotReading(end=at + 1, value=token.text, gain=2.0)
        elif token.kind in ("word", "quoted", "path") and token.word not in self.language.fillers:
            yield SlotReading(end=at + 1, value=token.text, gain=0.5)

    def _sums(self, at: int) -> Iterator[SlotReading]:
        text = self.raw(at, len(self.tokens))
        if is_expression(text, self.language.data.numbers_written):
            yield SlotReading(end=len(self.tokens), value=text, gain=2.0)

    def _is_command(self, start: int, end: int) -> bool:
        """False for "a marathon" and "for president"."""
        if self.tokens[start].word in self.language.data.indefinite:
            return False
        # Without "run" before it, only a known program is a command.
        if start == 0 and self.tokens[0].kind != "quoted" and self.tokens[0].word not in PROGRAMS:
            return False
        return may_be_command(self.raw(start, end), self.language.may_name_program)

    def _texts(self, at: int, element: PatternElement) -> Iterator[SlotReading]:
        count = len(self.tokens)
        quoted = self.tokens[at].kind == "quoted"
        # The "is" of "where's" cannot start a text.
        inside = at > 0 and self.tokens[at].start == self.tokens[at - 1].start
        if inside or (element.mode == "quoted" and not quoted):
            return
        vague = self.tokens[at].word in self.language.data.indefinite
        if element.mode == "rest":
            if element.names[0] == "command" and not quoted and not self._is_command(at, count):
                return
            yield SlotReading(end=count, value=self.raw(at, count), gain=0.1)
            return
        if quoted:
            # In a pattern that requires quotes, quoted text that looks like a path is a command.
            gain = 2.0 if element.mode == "quoted" else 1.0
            yield SlotReading(end=at + 1, value=self.tokens[at].text, gain=gain)
        if element.mode == "quoted":
            return
        # "write a poem to a.txt" does not want those two words in the file.
        longest = 1 if vague else MAX_TEXT_TOKENS
        for end in range(at + 1, min(count, at + longest) + 1):
            # Punctuation inside belongs to the text, at the end to the sentence around it.
            if self.tokens[end - 1].kind != "mark" or end < count:
                if element.names[0] == "command" and not self._is_command(at, end):
                    continue
                gain = 0.1 - 0.002 * (end - at)
                yield SlotReading(end=end, value=self.raw(at, end), gain=gain)
