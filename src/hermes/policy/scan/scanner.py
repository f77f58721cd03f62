"""Scans texts that a model will read for orders that are not the owner's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.policy.redact.redactor import Redactor
from hermes.policy.scan.code import in_code, in_files, is_known_installer, is_prose
from hermes.policy.scan.disguises import disguises
from hermes.policy.scan.finding import Sign, signs
from hermes.policy.scan.hidden import hidden
from hermes.policy.scan.interest import Spans, is_dull, parts
from hermes.policy.scan.likeness import CAUTION, DANGEROUS, LIKENESS, Likeness, Told, resembling
from hermes.policy.scan.mention import mentioned, spoken_of
from hermes.policy.scan.normal import LONGEST, readings
from hermes.policy.scan.rules import CIRCUMSTANCE, Scope
from hermes.policy.scan.sense import Row, in_sense, rows, speaks_to_machine

Kind = Literal["memory", "skill", "context", "tool_description"]
Verdict = Literal["safe", "caution", "dangerous"]
Severity = Literal["critical", "high", "low"]
SCOPES: dict[str, Scope] = {
    "memory": "strict",
    "skill": "strict",
    "context": "context",
    "tool_description": "context",
}
# Disguises that nobody uses without a reason: there the smallest sign is enough.
_MASKS = frozenset(("spelled_out", "digits_for_letters", "torn_words", "reversed", "hidden_tags"))
# What is found in runs of letters by chance.
_ORDINARY = frozenset(("risky_command", *CIRCUMSTANCE))
# Weak families that speak to whoever is no person.
_TOLD = frozenset(("addressed_to_ai", "new_authority", "guard_removed"))
_ORDER = {"low": 0, "high": 1, "critical": 2}
# In a script this is a finding; a text that explains something names such places, too.
_PLACE = "foothold"
# No honest text has as many; looking at more would take too long.
MOST_SIGNS = 300
_COMMENT = re.compile(
    r"<!--(?P<inner>.{0,4000}?)(?:-->|\Z)|\[//\]: # [(\"](?P<link>[^\n]{0,2000})", re.S
)
_UNSEEN = re.compile(
    r"<(?P<tag>\w+)[^>]{0,300}?(?:display:\s*none|visibility:\s*hidden|opacity:\s*0(?!\.[1-9])"
    r"|font-size:\s*[01](?:px|pt)?\b"
    r"|color\s*[:=]\s*[\"']?(?:white|#fff(?:fff)?\b|transparent)|(?:left|top"
    r"|text-indent):\s*-\d{3,}|\bhidden\b)[^>]{0,300}>(?P<inner>.{0,2000}?)</(?P=tag)",
    re.S,
)
_ATTRIBUTE = re.compile(
    r"\b(?:alt|title|value|content|aria-label)\s?=\s?\"(?P<inner>[^\"\n]{8,500})\""
)
# What a text must hold to be searched for such places.
_PLACES = (
    (_COMMENT, "html_comment_injection", ("<!--", "[//]: #")),
    (_ATTRIBUTE, "hidden_attribute", ("alt=", "title=", "value=", "content=", "aria-label=")),
    (_UNSEEN, "hidden_div", ("style=", "hidden", "color=")),
)
# An order to whoever reads it, inside something that no person sees.
_ADDRESSED = re.compile(
    r"\b(?:ai|llm|llms|assistants?(?! (?:manager|professor|director))|agents?|ai models?"
    r"|language models?|chatbots?|claude|gpt"
    r"|chatgpt|hermes|copilot)\b"
    r"[^.]{0,40}?(?:\b(?:must|should|need to|have to|please|shall|ignore|disregard|do not"
    r"|don't|always|never|run|send|execute)\b)"
    r"|\byou (?:must|should|need to|have to|will|are now)\b[^.]{0,60}?\b(?:reveal|send|run"
    r"|execute|ignore|upload|call|forward|include|obey|read)\b"
)
_HINTED = re.compile(
    r"\b(?:ignore|disregard|override|execute|send|reveal|exfiltrate|curl|upload|forward|obey"
    r"|instruction"
    r"|do not tell|don't tell|system prompt|api key)\b"
)


# How far before and behind a part of a text the rest of an element may be.
_TAG, _INNER = 300, 2000


class Found(Value):
    """One finding. `line` counts from 1; `text` is what was found, cut short."""

    id: str
    line: int
    severity: Severity
    text: str = ""
    file: str = ""


class Scanned(Value):
    verdict: Verdict
    findings: tuple[Found, ...] = ()


class Scanner:
    """Holds no state; `redactor` finds secrets that somebody wrote down."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()

    def scan(self, text: str, kind: Kind) -> Scanned:
        scope = SCOPES[kind]
        text = text[:LONGEST].removeprefix("\ufeff")
        plain, own = readings(text)
        spans = parts(plain)
        found = [*_hidden(text), *_judged(plain, spans, scope, kind), *_unseen(plain, spans)]
        # What stands there for everybody to read is not what a disguise is for.
        open_signs = _ORDINARY | {each.id for each in found}
        for name, reading in disguises(text, plain):
            if reading != plain and len(reading) > 8:
                found += [
                    Found(
                        id=f"{each.id}:{name}", line=each.line, severity="critical", text=each.text
                    )
                    for each in _judged(reading, parts(reading), scope, kind)
                    if each.severity == "critical"
                    or (each.severity == "high" and name in _MASKS and each.id not in open_signs)
                ]
        if own != plain:
            found += _judged(own, parts(own), scope, kind, meaning_only=True)
        if scope == "strict":
            found += self._secrets(text, kind)
        return concluded(found)

    def scan_skill(self, text: str, files: Mapping[str, str]) -> Scanned:
        """A skill with its files: texts are read as a model reads them, scripts as a machine."""
        found = [*self.scan(text, "skill").findings, *_commands(text)]
        scripts = {name: body for name, body in files.items() if not is_prose(name)}
        for name, body in files.items():
            if is_prose(name):
                found += [replace(each, file=name) for each in self.scan(body, "skill").findings]
        found += [
            Found(id=f.id, line=f.line, severity=f.severity, text=f.text, file=f.file)
            for f in in_files(scripts)
        ]
        return concluded(found)

    def _secrets(self, text: str, kind: Kind) -> Iterator[Found]:
        severity: Severity = "critical" if kind == "memory" else "high"
        for span in self._redactor.spans(text):
            if span.kind not in ("phone",):
                line = text.count("\n", 0, span.start) + 1
                yield Found(id="hardcoded_secret", line=line, severity=severity, text=span.kind)


def _commands(text: str) -> Iterator[Found]:
    """Commands that a text shows, if no text of a skill needs them."""
    plain = text[:LONGEST].lower()
    for each in in_code(text[:LONGEST], ""):
        telling = each.severity == "critical" or each.id == "supply_chain"
        telling &= each.id != _PLACE
        if telling and not spoken_of(plain, each.start):
            yield Found(id=each.id, line=each.line, severity=each.severity, text=each.text)


def concluded(found: list[Found]) -> Scanned:
    """Each finding once, and what they mean together."""
    worst_last = sorted(found, key=lambda each: _ORDER[each.severity])
    unique = list({(each.id, each.line, each.file): each for each in worst_last}.values())
    unique.sort(key=lambda each: (each.file, each.line, each.id))
    severities = {each.severity for each in unique}
    verdict: Verdict = "safe"
    if "critical" in severities:
        verdict = "dangerous"
    elif "high" in severities:
        verdict = "caution"
    return Scanned(verdict=verdict, findings=tuple(unique))


def _hidden(text: str) -> Iterator[Found]:
    for at, name, weight in hidden(text):
        line = text.count("\n", 0, at) + 1
        yield Found(id=name, line=line, severity="critical" if weight == "strong" else "high")


def _judged(
    plain: str, spans: Spans, scope: Scope, kind: str, *, meaning_only: bool = False
) -> Iterator[Found]:
    """A strong rule decides alone. A weak one is a feature of the classifier, and takes the
    severity of the passage that it matches in."""
    read = list(rows(plain, spans))
    phrased = () if meaning_only else signs(plain, scope, kind, spans)
    seen = [
        Told(sign=sign, mentioned=mentioned(plain, sign.start, sign.end))
        for sign in islice(chain(phrased, _meant(read, scope, kind)), MOST_SIGNS)
    ]
    if len(seen) == MOST_SIGNS:
        yield Found(id="too_many_signs", line=1, severity="high")
    likely = [each for each in resembling(plain, read, seen, kind) if each.score >= CAUTION]
    for sign in (each.sign for each in seen if not each.mentioned):
        if sign.id == "remote_code" and is_known_installer(plain[sign.start : sign.end]):
            continue
        around = max((each.score for each in likely if _overlap(sign, each)), default=-1.0)
        severity = "critical" if sign.strong else _severity(around)
        yield _found(plain, sign.id, sign.start, sign.end, severity)
    for each in _apart(likely):
        yield _found(plain, LIKENESS, each.start, each.end, _severity(each.score))


def _severity(score: float) -> Severity:
    return "critical" if score >= DANGEROUS else "high" if score >= CAUTION else "low"


def _apart(likely: list[Likeness]) -> Iterator[Likeness]:
    """Of overlapping passages the one that begins last: its first line is nearest to the order."""
    rest = sorted(likely, key=lambda each: -each.score)
    while rest:
        group = [each for each in rest if _overlap(each, rest[0])]
        last = max(group, key=lambda each: each.start)
        yield replace(last, score=rest[0].score)
        rest = [each for each in rest if each not in group]


def _found(plain: str, name: str, start: int, end: int, severity: Severity) -> Found:
    words = plain[start:end]
    # A passage begins with its first word, not with the lines before it.
    start += len(words) - len(words.lstrip())
    line = plain.count("\n", 0, start) + 1
    return Found(id=name, line=line, severity=severity, text=" ".join(words.split())[:120])


def _overlap(one: Sign | Likeness, other: Sign | Likeness) -> bool:
    return one.start < other.end and one.end > other.start


def _meant(read: list[tuple[int, Row]], scope: Scope, kind: str) -> Iterator[Sign]:
    for start, row in read:
        yield from in_sense(row, start, scope, kind)


def _unseen(plain: str, spans: Spans) -> Iterator[Found]:
    for expression, name, needed in _PLACES:
        if not any(word in plain for word in needed):
            continue
        for match in chain.from_iterable(_around(expression, plain, span) for span in spans):
            inner = match["inner"] or (match.groupdict().get("link") or "")
            if "enable javascript" in inner or is_dull(inner):
                continue
            if _ADDRESSED.search(inner) or _means_harm(inner):
                line = plain.count("\n", 0, match.start()) + 1
                words = " ".join(inner.split())[:120]
                yield Found(id=name, line=line, severity="critical", text=words)


def _around(
    expression: re.Pattern[str], plain: str, span: tuple[int, int]
) -> Iterator[re.Match[str]]:
    """What begins in a part of the text, or shortly before it."""
    first, last = span
    opened = plain.rfind("<", max(0, first - _TAG), first)
    return expression.finditer(plain, opened if opened >= 0 else first, last + _INNER)


def _means_harm(inner: str) -> bool:
    """What nobody sees is meant for a machine: there the smallest sign is enough."""
    if speaks_to_machine(inner):
        return True
    hinted = _HINTED.search(inner) is not None
    return any(
        (hinted or sign.strong or sign.id in _TOLD)
        and sign.id not in CIRCUMSTANCE
        and not mentioned(inner, sign.start, sign.end)
        for sign in chain(
            signs(inner, "strict", "context"), _meant(list(rows(inner)), "strict", "context")
        )
    )
