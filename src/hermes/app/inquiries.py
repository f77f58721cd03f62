"""Answers about URLs, files, archive members, secrets and texts that nobody has used yet."""

from __future__ import annotations

import asyncio
import os.path
from functools import lru_cache
from pathlib import Path
from typing import Literal

from hermes.app.judging import Inquiry, check_effect, shown
from hermes.codec.json import DecodeError, decode, plain
from hermes.codec.values import JsonObject, Value
from hermes.config.load import Config
from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.places.judging import Files
from hermes.policy.places.members import judge_member, parse_member
from hermes.policy.places.references import judge_references, references
from hermes.policy.redact.redactor import Redactor
from hermes.policy.redact.spans import Channel
from hermes.policy.scan.scanner import Scanner
from hermes.policy.urls.judging import Passage, Urls
from hermes.policy.urls.resolver import GivenAnswers, Resolver, SystemResolver

# What the owner's own rules say counts beside what is known about places.
_OWNERS = ("settings", "principal")

STRICTNESS = ("allow", "ask", "deny")


class Redaction(Value):
    """One line of a dialogue with `hermes policy redact`. `values` are secrets that only this
    line is about."""

    text: str
    channel: Channel = "log"
    values: tuple[str, ...] = ()
    pii: bool = False


class Scan(Value):
    """One line of a dialogue with `hermes policy scan`. `files` belong to a skill, by name."""

    kind: Literal["memory", "skill", "context", "tool_description"]
    text: str = ""
    files: dict[str, str] = {}


def check_url(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """Resolves the name, by the answers in `dns` if there are any; connects to nothing.
    `redirects` are followed as an answer's `Location` would be."""
    passage = asyncio.run(_visited(_urls(config, given), inquiry.value, given.get("redirects", ())))
    line = _told(inquiry, passage.decision)
    return {**line, "connect": passage.connect} if passage.allowed else line


async def _visited(urls: Urls, url: str, redirects: object) -> Passage:
    passage = await urls.judge(url)
    for location in redirects if isinstance(redirects, list) else ():
        if passage.allowed:
            passage = await urls.redirect(passage, str(location))
    return passage


def _urls(config: Config, given: JsonObject) -> Urls:
    answers = given.get("dns")
    resolver: Resolver = GivenAnswers(answers) if isinstance(answers, dict) else SystemResolver()
    return Urls(resolver, allow_private=given.get("allow_private") is True)


def check_place_too(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """The stricter of what the rules say and what is known of places."""
    answers = (check_effect(config, inquiry, given), check_path(config, inquiry, given))
    return max(answers, key=lambda answer: STRICTNESS.index(str(answer["decision"])))


def check_path(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """Reading and writing, by what is known about places and by the owner's rules."""
    files = _files(config, inquiry.cwd)
    judge = files.read if inquiry.effect == "read" else files.write
    decision = judge(inquiry.value)
    if isinstance(decision, Allow):
        line = check_effect(config, inquiry, given)
        if line["category"] in _OWNERS:
            return line
    return _told(inquiry, decision)


def check_attachment(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    return _told(inquiry, _files(config, inquiry.cwd).attach(inquiry.value))


def check_reference(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """A message, with all that it refers to by `@`."""
    decision = judge_references(inquiry.value, _files(config, inquiry.cwd))
    if isinstance(decision, Allow):
        urls = _urls(config, given)
        for reference in references(inquiry.value):
            if reference.kind == "url" and isinstance(no := urls.glance(reference.target), Deny):
                decision = no
    return _told(inquiry, decision)


def check_member(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """A member of an archive that would be unpacked in `cwd`. `link`, `kind`, `size`, `packed`
    and `mode` may be given too."""
    try:
        member = parse_member(given)
    except DecodeError as error:
        return shown(Deny(reason=f"The member cannot be used: {error}.", category="traversal"))
    return _told(inquiry, judge_member(member, _files(config, inquiry.cwd)))


def redacted(config: Config, line: bytes) -> JsonObject:
    """The answer to one line of `hermes policy redact`."""
    try:
        given = decode(Redaction, line)
    except DecodeError as error:
        return {"text": "", "found": [], "error": f"The line cannot be used: {error}."}
    redactor = _redactor(config.secret_values() | set(given.values), given.pii)
    found = redactor.redact(given.text, given.channel)
    return {"text": found.text, "found": list(found.found)}


def scanned(line: bytes) -> JsonObject:
    """The answer to one line of `hermes policy scan`."""
    try:
        given = decode(Scan, line)
    except DecodeError as error:
        why = {"id": "unreadable", "line": 0, "severity": "high", "text": str(error)}
        return {"verdict": "caution", "findings": [why]}
    scanner = Scanner()
    if given.kind == "skill":
        found = scanner.scan_skill(given.text, given.files)
    else:
        found = scanner.scan(given.text, given.kind)
    return {"verdict": found.verdict, "findings": [plain(each) for each in found.findings]}


@lru_cache(maxsize=4)
def _redactor(values: frozenset[str], pii: bool) -> Redactor:
    """Kept from line to line, so that the same secret keeps its number."""
    return Redactor(values, pii=pii)


def _files(config: Config, cwd: str) -> Files:
    state = str(config.home.root.resolve())
    return Files(os.path.realpath(cwd), str(Path.home()), state)


def _told(inquiry: Inquiry, decision: Decision) -> JsonObject:
    if inquiry.unattended and isinstance(decision, Ask):
        reason = f"Nobody is there to ask. {decision.reason}"
        return shown(Deny(reason=reason, category=decision.category))
    return shown(decision)
