"""`hermes policy`: explain decisions, list rules, show past decisions, redact and scan text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import click

from hermes.codec.values import JsonObject
from hermes.commands.formatting import escape_invisible, format_time, one_line
from hermes.config.load import Config
from hermes.journal.archive import SessionArchive
from hermes.journal.listing import SessionFilter
from hermes.policy.inquiries import (
    DecisionRecord,
    answer,
    answer_redact,
    answer_scan,
    categories,
    decision_records,
    explain_command,
)
from hermes.policy.rule_setup import owner_rules, rules_path
from hermes.surfaces.cli.command_context import Role, apply_style, config_of, with_archive
from hermes.surfaces.cli.output import CommandGroup, Output, limit_option, print_json, table

LINE = 100
MARKS: dict[str, Role] = {"allow": "ok", "ask": "warn", "deny": "error"}

command = CommandGroup(help="Explain what is allowed, asked and denied, and show past decisions.")


def _add_inquiry(name: str, help: str, answer: Callable[[Config, bytes], JsonObject]) -> None:
    """A command that answers each JSON line of stdin at once, so that a script can wait for it."""

    @command.text(help, name=name)
    @click.option("--json", "as_json", is_flag=True, help="Print JSON (always on).")
    def run(ctx: click.Context, as_json: bool) -> None:
        config = config_of(ctx)
        for line in sys.stdin.buffer:
            if line.strip():
                print_json(answer(config, line))
                sys.stdout.flush()


_add_inquiry(
    "check",
    "Decide effects from JSON lines on stdin, such as "
    '{"effect":"command","value":"rm -rf x","cwd":"."}. Nothing is executed.',
    answer,
)
_add_inquiry(
    "redact",
    'Redact the text of JSON lines from stdin, such as {"text":"KEY=…","channel":"model"}, and '
    "name the kinds of secrets.",
    answer_redact,
)
_add_inquiry(
    "scan",
    'Scan the text of JSON lines from stdin, such as {"kind":"memory","text":"…"}. Kinds: '
    'memory, skill (with "files"), context, tool_description.',
    lambda config, line: answer_scan(line),
)


@command.json("Explain the decision about a shell command, part by part.")
@click.option("--cwd", default=".", show_default=True, help="Decide as if this were the workspace.")
def explain(ctx: click.Context, script: str, cwd: str) -> Output:
    explanation = explain_command(config_of(ctx), script, cwd)

    def lines() -> Iterator[str]:
        decision = explanation["decision"]
        yield f"{apply_style(decision, MARKS[decision])}: {escape_invisible(explanation['reason'])}"
        if explanation["category"]:
            yield f"category: {explanation['category']}"
        for number, each in enumerate(explanation["commands"], 1):
            yield f"  {number}. {escape_invisible(each)}"
            for finding in explanation["findings"]:
                if finding["command"] == each:
                    yield f"     {finding['level']}: {escape_invisible(finding['reason'])}"

    return Output(explanation, lines())


@command.json("Show your own rules, and the categories of dangerous effects.")
def rules(ctx: click.Context) -> Output:
    config = config_of(ctx)
    approvals, allowed = config.settings.approvals, config.settings.command_allowlist
    own, file = owner_rules(config), rules_path(config)
    data = {
        "mode": approvals.mode,
        "file": str(file),
        "rules": own,
        "deny": approvals.deny,
        "allowed": allowed,
        "categories": categories(),
    }

    def lines() -> Iterator[str]:
        yield f"mode: {approvals.mode}"
        for pattern in approvals.deny:
            yield f"deny  command  {escape_invisible(pattern)}  (approvals.deny)"
        for text in allowed:
            yield f"allow exactly  {escape_invisible(one_line(text, LINE))}  (command_allowlist)"
        for rule in own:
            people = ", ".join((*rule.who, *rule.where))
            match = escape_invisible(rule.match)
            yield f"{rule.decision:5} {rule.effect:7}  {match}  {people}".rstrip()
        if not own:
            yield f"There are no rules in {file}."
        yield ""
        yield from table([("Category", "What it is"), *categories().items()], (16,))

    return Output(data, lines())


@command.json("Show recent decisions, and who answered the questions.", with_archive)
@limit_option("-n", default=20)
@click.option(
    "--only", type=click.Choice(["allow", "ask", "deny"]), help="Show only decisions of this kind."
)
async def log(
    archive: SessionArchive, *, session: str | None = None, limit: int, only: str | None
) -> Output:
    if session:
        ids = [await archive.find(session)]
    else:
        recent = await archive.recent(SessionFilter(archived=None), limit=limit)
        ids = [info.id for info in recent]
    decisions: list[DecisionRecord] = []
    for session_id in ids:
        rows = decision_records(session_id, await archive.records(session_id))
        decisions += [row for row in rows if only in (None, row.decision)]
    decisions = sorted(decisions, key=lambda row: (row.at, row.n))[-limit:]

    def lines() -> Iterator[str]:
        for row in decisions:
            by = f" — {row.answer} by {row.by}" if row.answer else ""
            by = by or (f" — by the {row.decided_by}" if row.decided_by != "policy" else "")
            word = apply_style(f"{row.decision:5}", MARKS[row.decision])
            subject = escape_invisible(one_line(row.subject, LINE))
            yield f"{format_time(row.at)}  {word}  {subject}{by}"
            if row.decision != "allow":
                yield f"{'':26}{one_line(row.reason, LINE)}"

    return Output(decisions, lines() if decisions else "There are no decisions yet.")
