"""Answers `hermes policy`: checks of effects, redaction, scans, explanations, past decisions."""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from hermes.codec.json import DecodeError, convert, decode, plain
from hermes.codec.values import JsonObject, Value
from hermes.config.load import Config
from hermes.core.effects import (
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Effect,
    FetchUrl,
    Principal,
    ReadPath,
    RunCommand,
    WritePath,
    subject,
)
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    EffectDecided,
    InnerCallIntended,
    Record,
    SessionOpened,
    ToolIntended,
    inner_id,
)
from hermes.policy.findings import Level, Verdict
from hermes.policy.patterns import vocabulary
from hermes.policy.places.files import parse_member, references
from hermes.policy.redact.redactor import Redactor
from hermes.policy.redact.spans import Channel
from hermes.policy.rule_setup import policy_for
from hermes.policy.rules import SessionPolicy
from hermes.policy.scan.scanner import TextScanner
from hermes.policy.urls.url_policy import StaticResolver, UrlDecision, UrlPolicy


class Inquiry(Value):
    """One input line of `hermes policy check`."""

    effect: str
    value: str = ""
    cwd: str = "."
    principal: Principal = "owner"
    surface: str = ""
    origins: tuple[str, ...] = ("user",)
    unattended: bool = False


class DecisionRecord(Value):
    """One decision from the journal: who asked, which tool, and what decided."""

    session_id: str
    n: int
    at: float
    who: str
    tool: str
    subject: str
    decision: str
    category: str = ""
    reason: str = ""
    decided_by: str = "policy"
    answer: str = ""
    by: str = ""


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


def check_url(config: Config, inquiry: Inquiry, raw: JsonObject) -> JsonObject:
    """Check a URL. Its host name is resolved, from `dns` if given, but nothing is connected.
    `redirects` are followed like `Location` headers."""
    policy = _make_policy(config, inquiry, raw)
    passage = asyncio.run(_follow_redirects(policy.urls, inquiry.value, raw.get("redirects", ())))
    decision = passage.decision
    if passage.allowed:
        effect = FetchUrl(url=inquiry.value)
        by_rules = policy.decide(effect, inquiry.principal, frozenset(inquiry.origins))
        decision = decision if isinstance(by_rules, Allow) else by_rules
    line = answer_of(inquiry, decision)
    return {**line, "connect": passage.connect} if isinstance(decision, Allow) else line


async def _follow_redirects(urls: UrlPolicy, url: str, redirects: object) -> UrlDecision:
    passage = await urls.check(url)
    for location in redirects if isinstance(redirects, list) else ():
        if passage.allowed:
            passage = await urls.redirect(passage, str(location))
    return passage


def _make_policy(config: Config, inquiry: Inquiry, raw: JsonObject) -> SessionPolicy:
    answers = raw.get("dns")
    return policy_for(
        config,
        inquiry.cwd,
        inquiry.surface,
        resolver=StaticResolver(answers) if isinstance(answers, dict) else None,
        private=raw.get("allow_private") is True,
    )


def check_attachment(config: Config, inquiry: Inquiry, raw: JsonObject) -> JsonObject:
    return answer_of(inquiry, _make_policy(config, inquiry, raw).files.attach(inquiry.value))


def check_reference(config: Config, inquiry: Inquiry, raw: JsonObject) -> JsonObject:
    """Check a message with all its `@` references."""
    policy = _make_policy(config, inquiry, raw)
    decision = policy.files.refer_all(inquiry.value)
    if isinstance(decision, Allow):
        for reference in references(inquiry.value):
            if reference.kind == "url" and isinstance(
                denial := policy.urls.quick_check(reference.target), Deny
            ):
                decision = denial
    return answer_of(inquiry, decision)


def check_member(config: Config, inquiry: Inquiry, raw: JsonObject) -> JsonObject:
    """Check an archive member that would be unpacked in `cwd`. `link`, `kind`, `size`, `packed` and
    `mode` are optional."""
    try:
        member = parse_member(raw)
    except DecodeError as error:
        return decision_fields(Deny(reason=f"Invalid member: {error}.", category="traversal"))
    return answer_of(inquiry, _make_policy(config, inquiry, raw).files.unpack(member))


def check_effect(config: Config, inquiry: Inquiry, raw: JsonObject) -> JsonObject:
    """Check commands and paths. Nothing is run or opened."""
    policy = policy_for(config, inquiry.cwd, inquiry.surface)
    effect = _effect(inquiry)
    return answer_of(inquiry, policy.decide(effect, inquiry.principal, frozenset(inquiry.origins)))


def _effect(inquiry: Inquiry) -> Effect:
    """Return the effect of an inquiry. Its path is not normalized: the spelling is part of the
    check."""
    if inquiry.effect == "command":
        return RunCommand(script=inquiry.value, cwd=os.path.realpath(inquiry.cwd))
    return PATH_EFFECTS[inquiry.effect](path=inquiry.value)


PATH_EFFECTS: dict[str, type[ReadPath | WritePath | DeletePath]] = {
    "read": ReadPath,
    "write": WritePath,
    "delete": DeletePath,
}
Check = Callable[[Config, Inquiry, JsonObject], JsonObject]
CHECKS: dict[str, Check] = {
    **dict.fromkeys(("command", *PATH_EFFECTS), check_effect),
    "url": check_url,
    "attach": check_attachment,
    "reference": check_reference,
    "member": check_member,
}


def answer(config: Config, line: bytes) -> JsonObject:
    """Return the answer to one input line; an invalid line is denied."""
    try:
        raw = decode(dict, line)
        inquiry = convert(Inquiry, raw)
    except DecodeError as error:
        return _refusal(f"Invalid line: {error}.")
    check = CHECKS.get(inquiry.effect)
    if check is None:
        return _refusal(f"There is no check for {inquiry.effect!r}.")
    return check(config, inquiry, raw)


def _refusal(reason: str) -> JsonObject:
    return {"decision": "deny", "reason": reason, "category": "unclear"}


def answer_of(inquiry: Inquiry, decision: Decision) -> JsonObject:
    """Return the decision as an answer. Unattended, a question becomes a denial."""
    if inquiry.unattended and isinstance(decision, Ask):
        reason = f"No user is present to ask. {decision.reason}"
        return decision_fields(Deny(reason=reason, category=decision.category))
    return decision_fields(decision)


def decision_fields(decision: Decision) -> JsonObject:
    fields = plain(decision)
    line = {
        "decision": fields["type"],
        "reason": decision.reason,
        "category": fields.get("category", ""),
    }
    return {**line, "hardline": True} if fields.get("hardline") else line


def answer_redact(config: Config, line: bytes) -> JsonObject:
    """Return the answer to one line of `hermes policy redact`."""
    try:
        request = decode(Redaction, line)
    except DecodeError as error:
        return {"text": "", "found": [], "error": f"Invalid line: {error}."}
    redactor = _redactor(config.secret_values() | set(request.values), request.pii)
    found = redactor.redact(request.text, request.channel)
    return {"text": found.text, "found": list(found.found)}


def answer_scan(line: bytes) -> JsonObject:
    """Return the answer to one line of `hermes policy scan`."""
    try:
        request = decode(Scan, line)
    except DecodeError as error:
        why = {"id": "unreadable", "line": 0, "severity": "high", "text": str(error)}
        return {"verdict": "caution", "findings": [why]}
    scanner = TextScanner()
    if request.kind == "skill":
        found = scanner.scan_skill(request.text, request.files)
    else:
        found = scanner.scan(request.text, request.kind)
    return {"verdict": found.verdict, "findings": [plain(each) for each in found.findings]}


@lru_cache(maxsize=4)
def _redactor(values: frozenset[str], pii: bool) -> Redactor:
    """Return a redactor for these values, cached between lines so that a secret keeps its
    number."""
    return Redactor(values, pii=pii)


def explain_command(config: Config, script: str, cwd: str) -> JsonObject:
    """Return the decision about a command, with every command inside it and all findings."""
    folder = os.path.realpath(cwd)
    policy = policy_for(config, folder)
    effect = RunCommand(script=script, cwd=folder)
    verdict: Verdict = policy.verdict(effect)
    decision = policy.decide(effect, "owner", frozenset({"user"}))
    found = dict.fromkeys(
        (each.level, each.category, each.reason, each.command)
        for each in verdict.findings
        if each.level >= Level.WORK
    )
    return {
        **decision_fields(decision),
        "commands": list(verdict.commands),
        "findings": [
            {"level": level.name.lower(), "category": category, "reason": why, "command": command}
            for level, category, why, command in found
        ],
    }


def categories() -> dict[str, str]:
    return {name: each.about for name, each in vocabulary().categories.items()}


def decision_records(session_id: str, records: tuple[Record, ...]) -> list[DecisionRecord]:
    """Return every decision of a session, oldest first, with the users' answers."""
    answers = {
        record.event.id: record.event
        for record in records
        if isinstance(record.event, ApprovalAnswered)
    }
    asked = {
        (record.event.call_id, subject(record.event.effect)): answers.get(record.event.id)
        for record in records
        if isinstance(record.event, ApprovalAsked)
    }
    who, tools, lines = "owner", dict[str, str](), list[DecisionRecord]()
    for record in records:
        by = "policy"
        match record.event:
            case SessionOpened(principal=principal):
                who = principal
                continue
            case ToolIntended(call_id=call_id, name=name, judged=judged):
                tools[call_id] = name
            case InnerCallIntended():
                tools[inner_id(record.event.call_id, record.event.key)] = record.event.name
                continue
            case EffectDecided(call_id=call_id, judged=one, by=by):
                judged = (one,)
            case _:
                continue
        for each in judged:
            target = subject(each.effect)
            answered = asked.get((call_id, target))
            fields = decision_fields(each.decision)
            line = DecisionRecord(
                session_id=session_id,
                n=record.n,
                at=record.at,
                who=who,
                tool=tools.get(call_id, ""),
                subject=target,
                decision=fields["decision"],
                category=fields["category"],
                reason=fields["reason"],
                decided_by=by,
                answer=answered.choice if answered else "",
                by=answered.by if answered else "",
            )
            lines.append(line)
    return lines
