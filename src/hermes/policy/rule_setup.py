"""Builds the policy rules of a home, and answers what they decide about an effect."""

from __future__ import annotations

import importlib
import os.path
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hermes.codec.json import DecodeError, convert, decode, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.load import Config
from hermes.core.effects import (
    Ask,
    Decision,
    DeletePath,
    Deny,
    Effect,
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
    JudgedEffect,
    Record,
    SessionOpened,
    ToolIntended,
)
from hermes.policy.findings import CATEGORIES, Level, Verdict
from hermes.policy.mcp_trust import untrusted_server_rules
from hermes.policy.owner_rules import Rule, load_rules
from hermes.policy.rules import Blocked, PolicySettings, Rules
from hermes.policy.safe_roots import safe_roots
from hermes.policy.suspects.suspects import suspects_of

if TYPE_CHECKING:
    from hermes.policy.urls.resolver import HostResolver

RULES_FILE = "policy.toml"


class Inquiry(Value):
    """One input line of `hermes policy check`."""

    effect: str
    value: str = ""
    cwd: str = "."
    principal: Principal = "owner"
    surface: str = ""
    origins: tuple[str, ...] = ("user",)
    unattended: bool = False


Check = Callable[[Config, Inquiry, JsonObject], JsonObject]
# Kind of effect -> its check, imported on first use.
CHECKS: dict[str, str] = {
    "command": "hermes.policy.rule_setup:check_effect",
    "delete": "hermes.policy.rule_setup:check_effect",
    "url": "hermes.policy.inquiries:check_url",
    "read": "hermes.policy.rule_setup:check_effect",
    "write": "hermes.policy.rule_setup:check_effect",
    "attach": "hermes.policy.inquiries:check_attachment",
    "reference": "hermes.policy.inquiries:check_reference",
    "member": "hermes.policy.inquiries:check_member",
}


class DecisionRecord(Value):
    """One decision from the journal: who asked, which tool, and what decided (the policy or a
    judge). `answer` is the user's answer, if there was a question."""

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


def policy_settings(
    config: Config, *, surface: str, approved: bool = False, since: float | None = None
) -> PolicySettings:
    """`approved` answers all questions with yes when no user can be asked. `since` is the start of
    the session."""
    approvals, security = config.settings.approvals, config.settings.security
    blocklist = security.website_blocklist
    files = tuple(
        str(config.home.root / Path(each).expanduser()) for each in blocklist.shared_files
    )
    return PolicySettings(
        mode="off" if approved else approvals.mode,
        deny=approvals.deny,
        allowed=config.settings.command_allowlist,
        rules=(*load_rules(rules_path(config)), *untrusted_server_rules(config)),
        surface=surface,
        private=security.allow_private_urls,
        blocked=Blocked(domains=blocklist.domains, files=files) if blocklist.enabled else Blocked(),
        hosts=security.trusted_hosts,
        trusted=security.trusted_dirs,
        safe_roots=safe_roots(security),
        since=since,
    )


def rules_path(config: Config) -> Path:
    return config.home.root / RULES_FILE


def owner_rules(config: Config) -> tuple[Rule, ...]:
    return load_rules(rules_path(config))


def rules_for(
    config: Config,
    cwd: str,
    surface: str = "",
    *,
    resolver: HostResolver | None = None,
    private: bool = False,
) -> Rules:
    """The rules of a session opened in this folder. They save nothing. `private` permits private
    addresses, like the setting."""
    settings = policy_settings(config, surface=surface)
    return Rules(
        replace(settings, private=settings.private or private),
        root=os.path.realpath(cwd),
        home=str(Path.home()),
        state=str(config.home.root.resolve()),
        keep=lambda _: None,
        resolver=resolver,
        suspects=suspects_of(config.home.root),
    )


def answer(config: Config, line: bytes) -> JsonObject:
    """The answer to one input line; an invalid line is denied."""
    try:
        given = decode(dict, line)
        inquiry = convert(Inquiry, given)
    except DecodeError as error:
        return _refusal(f"Invalid line: {error}.")
    target = CHECKS.get(inquiry.effect)
    if target is None:
        return _refusal(f"There is no check for {inquiry.effect!r}.")
    module, _, name = target.partition(":")
    check = cast(Check, getattr(importlib.import_module(module), name))
    return check(config, inquiry, given)


def _refusal(reason: str) -> JsonObject:
    return {"decision": "deny", "reason": reason, "category": "unclear"}


def check_effect(config: Config, inquiry: Inquiry, given: JsonObject) -> JsonObject:
    """Commands and paths. Nothing is run or opened."""
    rules = rules_for(config, inquiry.cwd, inquiry.surface)
    effect = _effect(inquiry)
    return answer_of(inquiry, rules.decide(effect, inquiry.principal, frozenset(inquiry.origins)))


def _effect(inquiry: Inquiry) -> Effect:
    """Paths are not normalized: their spelling is part of the check."""
    match inquiry.effect:
        case "command":
            return RunCommand(script=inquiry.value, cwd=os.path.realpath(inquiry.cwd))
        case "read":
            return ReadPath(path=inquiry.value)
        case "delete":
            return DeletePath(path=inquiry.value)
    return WritePath(path=inquiry.value)


def answer_of(inquiry: Inquiry, decision: Decision) -> JsonObject:
    """The decision as an answer. Unattended, a question becomes a denial."""
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


def explain_command(config: Config, script: str, cwd: str) -> JsonObject:
    """The decision about a command, with every command inside it and all findings."""
    folder = os.path.realpath(cwd)
    rules = rules_for(config, folder)
    effect = RunCommand(script=script, cwd=folder)
    verdict: Verdict = rules.verdict(effect)
    decision = rules.decide(effect, "owner", frozenset({"user"}))
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
    return dict(CATEGORIES)


def decision_records(session_id: str, records: tuple[Record, ...]) -> list[DecisionRecord]:
    """Every decision of a session, oldest first, with the users' answers."""
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
    who, tools = "owner", dict[str, str]()
    lines: list[DecisionRecord] = []

    def add(record: Record, call_id: str, judged: JudgedEffect, by: str) -> None:
        target = subject(judged.effect)
        answered = asked.get((call_id, target))
        fields = decision_fields(judged.decision)
        lines.append(
            DecisionRecord(
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
        )

    for record in records:
        match record.event:
            case SessionOpened(principal=principal):
                who = principal
            case ToolIntended(call_id=call_id, name=name, judged=all_):
                tools[call_id] = name
                for judged in all_:
                    add(record, call_id, judged, "policy")
            case EffectDecided(call_id=call_id, judged=judged, by=by):
                add(record, call_id, judged, by)
            case _:
                continue
    return lines
