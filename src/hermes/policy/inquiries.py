"""Answers policy checks about URLs, attachments, archive members, secrets and texts."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Literal

from hermes.codec.json import DecodeError, decode, plain
from hermes.codec.values import JsonObject, Value
from hermes.config.load import Config
from hermes.core.effects import Allow, Deny, FetchUrl
from hermes.policy.places.files import judge_references, references
from hermes.policy.places.members import judge_member, parse_member
from hermes.policy.redact.redactor import Redactor
from hermes.policy.redact.spans import Channel
from hermes.policy.rule_setup import Inquiry, answer_of, decision_fields, rules_for
from hermes.policy.rules import Rules
from hermes.policy.scan.scanner import TextScanner
from hermes.policy.urls.resolver import StaticResolver
from hermes.policy.urls.url_policy import UrlDecision, UrlPolicy


class Redaction(Value):
    """One input line of `hermes policy redact`. `values` are additional secrets for this line."""

    text: str
    channel: Channel = "log"
    values: tuple[str, ...] = ()
    pii: bool = False


class Scan(Value):
    """One input line of `hermes policy scan`. `files` are a skill's files by name."""

    kind: Literal["memory", "skill", "context", "tool_description"]
    text: str = ""
    files: dict[str, str] = {}


def check_url(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """Resolves the host name, from `dns` if given, but does not connect. `redirects` are followed
    like `Location` headers."""
    rules = _rules(config, inquiry, given)
    passage = asyncio.run(_follow_redirects(rules.urls, inquiry.value, given.get("redirects", ())))
    decision = passage.decision
    if passage.allowed:
        effect = FetchUrl(url=inquiry.value)
        by_rules = rules.decide(effect, inquiry.principal, frozenset(inquiry.origins))
        decision = decision if isinstance(by_rules, Allow) else by_rules
    line = answer_of(inquiry, decision)
    return {**line, "connect": passage.connect} if isinstance(decision, Allow) else line


async def _follow_redirects(urls: UrlPolicy, url: str, redirects: object) -> UrlDecision:
    passage = await urls.judge(url)
    for location in redirects if isinstance(redirects, list) else ():
        if passage.allowed:
            passage = await urls.redirect(passage, str(location))
    return passage


def _rules(config: Config, inquiry: Inquiry, given: JsonObject) -> Rules:
    answers = given.get("dns")
    return rules_for(
        config,
        inquiry.cwd,
        inquiry.surface,
        resolver=StaticResolver(answers) if isinstance(answers, dict) else None,
        private=given.get("allow_private") is True,
    )


def check_attachment(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    return answer_of(inquiry, _rules(config, inquiry, given).files.attach(inquiry.value))


def check_reference(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """A message with all its `@` references."""
    rules = _rules(config, inquiry, given)
    decision = judge_references(inquiry.value, rules.files)
    if isinstance(decision, Allow):
        for reference in references(inquiry.value):
            if reference.kind == "url" and isinstance(
                denial := rules.urls.quick_check(reference.target), Deny
            ):
                decision = denial
    return answer_of(inquiry, decision)


def check_member(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """An archive member that would be unpacked in `cwd`. `link`, `kind`, `size`, `packed` and
    `mode` are optional."""
    try:
        member = parse_member(given)
    except DecodeError as error:
        return decision_fields(Deny(reason=f"Invalid member: {error}.", category="traversal"))
    return answer_of(inquiry, judge_member(member, _rules(config, inquiry, given).files))


def answer_redact(config: Config, line: bytes) -> JsonObject:
    """The answer to one line of `hermes policy redact`."""
    try:
        given = decode(Redaction, line)
    except DecodeError as error:
        return {"text": "", "found": [], "error": f"Invalid line: {error}."}
    redactor = _redactor(config.secret_values() | set(given.values), given.pii)
    found = redactor.redact(given.text, given.channel)
    return {"text": found.text, "found": list(found.found)}


def answer_scan(line: bytes) -> JsonObject:
    """The answer to one line of `hermes policy scan`."""
    try:
        given = decode(Scan, line)
    except DecodeError as error:
        why = {"id": "unreadable", "line": 0, "severity": "high", "text": str(error)}
        return {"verdict": "caution", "findings": [why]}
    scanner = TextScanner()
    if given.kind == "skill":
        found = scanner.scan_skill(given.text, given.files)
    else:
        found = scanner.scan(given.text, given.kind)
    return {"verdict": found.verdict, "findings": [plain(each) for each in found.findings]}


@lru_cache(maxsize=4)
def _redactor(values: frozenset[str], pii: bool) -> Redactor:
    """Cached between lines, so that a secret keeps its number."""
    return Redactor(values, pii=pii)
