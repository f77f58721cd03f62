"""Matches the rules for prose (rules.toml) and for scripts (code.toml), and tells quotations."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from hermes.codec.values import Value, replace
from hermes.policy.patterns import regex
from hermes.policy.scan.disguises import find_hidden
from hermes.policy.scan.tables import RANK, TABLES, ScanRule, Scope, Severity, compiled

# Rules that describe circumstances: every text about distributed systems matches them.
CIRCUMSTANCE = frozenset(("c2_register", "c2_heartbeat", "c2_pull_tasks", "persistence"))
_WORD = regex(r"[a-z0-9']+")
# Characters after which no word begins.
_INSIDE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789'_")
_ENDINGS = ("", "s", "es", "d", "ed", "ing")


class RuleMatch(Value):
    """A match in the folded text."""

    id: str
    start: int
    end: int
    strong: bool


class _Start(NamedTuple):
    """The beginning of some rules. `inner` are words that a text with it must contain."""

    text: str
    data: bytes
    inner: frozenset[str]
    rules: list[ScanRule]


@cache
def _starts(scope: Scope, kind: str) -> tuple[dict[str, list[_Start]], list[_Start]]:
    """Return the starts by each form of their first word, and those that do not begin with a
    word."""
    known: dict[str, _Start] = {}
    by_word: dict[str, dict[str, _Start]] = {}
    others: dict[str, _Start] = {}
    for rule in TABLES.rules:
        if RANK[rule.scope] > RANK[scope] or (rule.fits and kind != rule.fits):
            continue
        for text in rule.starts:
            words = _WORD.findall(text)
            begins = _WORD.match(text) is not None
            inner = frozenset(words[begins:-1])
            start = known.setdefault(text, _Start(text, _encode(text), inner, []))
            start.rules.append(rule)
            if not begins:
                others[text] = start
                continue
            endings = _ENDINGS if rule.bent and words[0] == text else ("",)
            for ending in endings:
                by_word.setdefault(words[0] + ending, {})[text] = start
    return {word: list(each.values()) for word, each in by_word.items()}, list(others.values())


def _encode(text: str) -> bytes:
    """Encode a text with one byte per character: searching bytes is much faster."""
    return text.encode("latin-1", "replace")


def match_rules(
    plain: str, scope: Scope, kind: str, spans: Iterable[tuple[int, int]] | None = None
) -> Iterator[RuleMatch]:
    """Yield all rule matches in the folded text, or in parts of it."""
    padded = "\n" + plain
    data = _encode(padded)
    by_word, others = _starts(scope, kind)
    for first, last in spans if spans is not None else ((0, len(plain)),):
        words = set(_WORD.findall(plain, first, last))
        present = {
            start.text: start
            for word in sorted(words & by_word.keys())
            for start in by_word[word]
            if start.inner <= words
        }
        for start in (*present.values(), *(each for each in others if each.inner <= words)):
            begins = start.text in present
            at = data.find(start.data, first + begins, last + 1)
            while at >= 0:
                inside = begins and (padded[at - 1] in _INSIDE or padded[at - 2 : at] == "--")
                if not inside and padded.startswith(start.text, at):
                    for rule in start.rules:
                        if tail := compiled(rule.tail).match(padded, at + len(start.text)):
                            yield RuleMatch(
                                id=rule.id,
                                start=max(at - (padded[at] != "\n"), 0),
                                end=tail.end() - 1,
                                strong=rule.weight == "strong",
                            )
                at = data.find(start.data, at + 1, last + 1)


_SPEAKER, _QUOTING, _REPORTING, _ATTACK, _SPOKEN_AFTER = (
    regex(TABLES.expressions[name])
    for name in ("speakers", "quoting", "reporting", "attack", "spoken_after")
)
# Lists, tables and block quotes: the text around them says what they are.
_SET_APART = regex(r"[ \t]*(?:>|\||[-+] |\d+[.)] )")
_OPENERS = "\"'`“‘«‹「『（(["
_CLOSERS = "\"'`”’»›」』）)]"
_SENTENCE = regex(r"[.!?;。！？]\s|\n\s*\n|\n\s*(?:[-*#>|]|\d+\.)\s")
# The value of a field is not a quotation.
_VALUE = regex(r"[\"'\w]\s{0,2}[:=]\s{0,2}[\"'`][^\"'`]*\Z")


def is_reported(text: str, start: int) -> bool:
    """Whether the sentence forbids or reports what begins at `start`."""
    sentence = _SENTENCE.split(text[max(0, start - 280) : start])[-1]
    return _REPORTING.search(sentence) is not None or _SPEAKER.search(sentence) is not None


def is_quotation(text: str, start: int, end: int) -> bool:
    """Whether the words from `start` to `end` are reported, quoted as an example, or forbidden."""
    if text[end - 1 : end] in _CLOSERS:
        end -= 1
    before = text[max(0, start - 280) : start]
    breaks = [match.end() for match in _SENTENCE.finditer(before)]
    sentence = before[breaks[-1] :] if breaks else before
    if _REPORTING.search(sentence):
        return True
    reported = _SPEAKER.search(sentence) is not None
    if _is_quoted(text, start, end):
        wider = before[breaks[-2] :] if len(breaks) > 1 else before
        near = _SPEAKER.search(wider) or _QUOTING.search(sentence)
        after = _SENTENCE.split(text[end : end + 160], maxsplit=1)[0]
        if reported or near is not None or _SPOKEN_AFTER.search(after):
            return True
    return reported or _is_example(text, start, end)


def _is_example(text: str, start: int, end: int) -> bool:
    """Whether the line is a list item, table row or block quote in a text about attacks."""
    line = text.rfind("\n", 0, start) + 1
    if not _SET_APART.match(text, line):
        return False
    return _ATTACK.search(text, max(0, line - 240), line) is not None or (
        text[line:].lstrip().startswith(">") and _ATTACK.search(text, end, end + 160) is not None
    )


def _is_quoted(text: str, start: int, end: int) -> bool:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    before = text[line_start:start]
    if _VALUE.search(before):
        return False
    after = text[end : line_end if line_end >= 0 else len(text)]
    for opener, closer in zip(_OPENERS[:9], _CLOSERS[:9], strict=True):
        if opener == "'":
            inside = re.search(r"(?:^|[\s(\[])'[^']*\Z", before) is not None and "'" in after
        elif opener == closer:
            inside = before.count(opener) % 2 == 1 and closer in after
        else:
            inside = before.rfind(opener) > before.rfind(closer) and closer in after
        if inside:
            return True
    return "|" in before and "|" in after


MOST_FILES = 50
MOST_BYTES = 1_000_000
LARGEST_FILE = 256 * 1024


def is_known_installer(text: str) -> bool:
    """Whether the text downloads a well-known install script."""
    return compiled(TABLES.expressions["installers"]).search(text) is not None


class ScanFinding(Value):
    """A match of a rule in a scanned text. `line` counts from 1; `text` is the matched text,
    shortened."""

    id: str
    line: int
    severity: Severity
    text: str = ""
    file: str = ""


def scan_files(texts: Mapping[str, str]) -> Iterator[ScanFinding]:
    """Yield the findings in the files of a skill."""
    if len(texts) > MOST_FILES or sum(map(len, texts.values())) > MOST_BYTES:
        yield ScanFinding(id="too_much", line=0, severity="high")
    for name, text in texts.items():
        clean = posixpath.normpath(name.replace("\\", "/"))
        if clean.startswith(("/", "..", "~")) or re.match(r"[A-Za-z]:", clean) or "\0" in name:
            yield ScanFinding(id="traversal", file=name, line=0, severity="critical")
        if "\0" in text or len(text) > LARGEST_FILE:
            yield ScanFinding(id="unreadable_file", file=name, line=0, severity="high")
        for _, finding in scan_code(text[:LARGEST_FILE], name):
            yield finding
        for finding in scan_hidden(text):
            yield replace(finding, file=name)


_HIDDEN: dict[str, Severity] = {"strong": "critical", "weak": "high", "faint": "low"}


def scan_hidden(text: str) -> Iterator[ScanFinding]:
    """Yield the findings about hidden characters."""
    for at, name, weight in find_hidden(text):
        line = text.count("\n", 0, at) + 1
        yield ScanFinding(id=name, line=line, severity=_HIDDEN[weight])


def scan_code(text: str, name: str) -> Iterator[tuple[int, ScanFinding]]:
    """Yield the findings in a script, or in the commands of a text, with their offsets."""
    for pattern in TABLES.code:
        for match in compiled(pattern.expression).finditer(text):
            if pattern.id == "fetched_code" and is_known_installer(match[0]):
                continue
            finding = ScanFinding(
                id=pattern.id,
                file=name,
                line=text.count("\n", 0, match.start()) + 1,
                severity=pattern.severity,
                text=" ".join(match[0].split())[:120],
            )
            yield match.start(), finding
            break
