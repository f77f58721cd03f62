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
from hermes.policy.scan.likeness import LIKENESS, resembling
from hermes.policy.scan.mention import mentioned, spoken_of
from hermes.policy.scan.normal import LONGEST, readings
from hermes.policy.scan.rules import CIRCUMSTANCE, Scope
from hermes.policy.scan.sense import in_sense, rows, speaks_to_machine

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
# Weak families that speak to whoever is no person.
_TOLD = frozenset(("addressed_to_ai", "new_authority", "guard_removed"))
_ORDER = {"low": 0, "high": 1, "critical": 2}
# How close two weak signs must stand to count together.
NEAR = 200
# Weak families that say the same in other words: two of them are one sign.
_GROUPS = {
    name: group
    for group, names in {
        "whose word": "new_authority fake_conversation fake_update fake_tool_call addressed_to_ai",
        "another self": "role_pretend unrestricted",
        "set aside": "rules_set_aside rules_void prompt_injection identity_override",
        "told": "leak_system_prompt answer_hijacked",
        "done": "risky_command destructive forced_action c2_obey",
        "taken": "sent_away read_secrets secrets_named",
        "unguarded": "guard_removed bypass_restrictions env_var_unset_agent",
        "unseen": "secrecy silent_action anti_forensic_history anti_forensic_logs",
    }.items()
    for name in names.split()
}
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
        found = [*_hidden(text), *_judged(plain, scope, kind)]
        found += _unseen(plain)
        for name, reading in disguises(text, plain):
            if reading != plain and len(reading) > 8:
                found += [
                    Found(
                        id=f"{each.id}:{name}", line=each.line, severity="critical", text=each.text
                    )
                    for each in _judged(_changed(plain, reading), scope, kind)
                    if each.severity == "critical" or name in _MASKS
                ]
        if own != plain:
            found += _judged(own, scope, kind, meaning_only=True)
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


def _judged(plain: str, scope: Scope, kind: str, *, meaning_only: bool = False) -> Iterator[Found]:
    phrased = () if meaning_only else signs(plain, scope, kind)
    seen = list(islice(chain(phrased, _meant(plain, scope, kind)), MOST_SIGNS))
    if len(seen) == MOST_SIGNS:
        yield Found(id="too_many_signs", line=1, severity="high")
    told = [sign for sign in seen if not _is_mention(plain, sign)]
    for sign in told:
        if sign.id == "remote_code" and is_known_installer(plain[sign.start : sign.end]):
            continue
        together = sign.strong or _together(sign, told)
        line = plain.count("\n", 0, sign.start) + 1
        words = " ".join(plain[sign.start : sign.end].split())[:120]
        yield Found(id=sign.id, line=line, severity="critical" if together else "low", text=words)


def _is_mention(plain: str, sign: Sign) -> bool:
    if sign.id == LIKENESS:
        # A whole passage: who says such words stands in it, and not before.
        return spoken_of(plain, sign.end) or spoken_of(plain, sign.start)
    return mentioned(plain, sign.start, sign.end)


def _meant(plain: str, scope: Scope, kind: str) -> Iterator[Sign]:
    for start, row in rows(plain):
        yield from in_sense(row, start, scope, kind)
        yield from resembling(row, start, kind, len(plain))


def _together(sign: Sign, told: list[Sign]) -> bool:
    """Two weak signs of different families close together; for what every description of a
    distributed system says, two more that it does not say."""
    group = _GROUPS.get(sign.id, sign.id)
    near = {
        _GROUPS.get(other.id, other.id)
        for other in told
        if abs(other.start - sign.start) <= NEAR
        and (
            other.start >= sign.end
            or sign.start >= other.end
            # A passage as a whole is another sign than the words in it.
            or LIKENESS in (sign.id, other.id)
        )
    } - {group}
    telling = near - CIRCUMSTANCE
    if sign.id in CIRCUMSTANCE:
        return len(telling) >= 2
    return bool(telling) or len(near) >= 2


def _unseen(plain: str) -> Iterator[Found]:
    for expression, name, needed in _PLACES:
        if not any(word in plain for word in needed):
            continue
        for match in expression.finditer(plain):
            inner = match["inner"] or (match.groupdict().get("link") or "")
            if "enable javascript" in inner:
                continue
            if _ADDRESSED.search(inner) or _means_harm(inner):
                line = plain.count("\n", 0, match.start()) + 1
                words = " ".join(inner.split())[:120]
                yield Found(id=name, line=line, severity="critical", text=words)


def _means_harm(inner: str) -> bool:
    """What nobody sees is meant for a machine: there the smallest sign is enough."""
    if speaks_to_machine(inner):
        return True
    hinted = _HINTED.search(inner) is not None
    return any(
        (hinted or sign.strong or sign.id in _TOLD)
        and sign.id not in CIRCUMSTANCE
        and not mentioned(inner, sign.start, sign.end)
        for sign in chain(signs(inner, "strict", "context"), _meant(inner, "strict", "context"))
    )


def _changed(plain: str, reading: str) -> str:
    """Only the lines that read otherwise, at their place."""
    before, after = plain.split("\n"), reading.split("\n")
    if len(before) != len(after):
        return reading
    return "\n".join(b if a != b else "" for a, b in zip(before, after, strict=True))
