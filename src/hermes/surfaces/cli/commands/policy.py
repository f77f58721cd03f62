"""`hermes policy`: what may be done without a question, and why; what was decided."""

from __future__ import annotations

import sys

import click

from hermes.app.build import App
from hermes.codec.json import encode
from hermes.commands.visible import exposed, one_line
from hermes.journal.archive import SessionFilter
from hermes.policy.rule_setup import (
    Decided,
    answer,
    categories,
    decided,
    explained,
    rules_path,
    standing_rules,
)
from hermes.surfaces.cli.commands.policy_dialogue import redact, scan
from hermes.surfaces.cli.output import (
    as_json_option,
    columns,
    moment,
    print_json,
    print_table,
    with_app,
)
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import Role, styled

LINE = 100
MARKS: dict[str, Role] = {"allow": "ok", "ask": "warn", "deny": "error"}


@click.group(help="What may be done without a question, what was decided, and why.")
def command() -> None:
    pass


@command.command(
    help='Answer JSON lines such as {"effect":"command","value":"rm -rf x","cwd":"."} from the '
    "input, one line each. Nothing is run or opened."
)
@click.option("--json", "as_json", is_flag=True, help="Always the case here.")
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    config = config_of(ctx)
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.buffer.write(encode(answer(config, line)) + b"\n")
            sys.stdout.buffer.flush()


@command.command(help="Say what a command would do, command by command, and what is decided.")
@click.argument("script")
@click.option("--cwd", default=".", show_default=True, help="The workspace it would run in.")
@as_json_option
@click.pass_context
def explain(ctx: click.Context, script: str, cwd: str, as_json: bool) -> None:
    told = explained(config_of(ctx), script, cwd)
    if as_json:
        print_json(told)
        return
    print(f"{styled(told['decision'], MARKS[told['decision']])}: {exposed(told['reason'])}")
    if told["category"]:
        print(f"category: {told['category']}")
    for number, each in enumerate(told["commands"], 1):
        print(f"  {number}. {exposed(each)}")
        for found in told["findings"]:
            if found["command"] == each:
                print(f"     {found['level']}: {exposed(found['reason'])}")


@command.command(help="Show the rules in force: yours, and the kinds of danger that are known.")
@as_json_option
@click.pass_context
def rules(ctx: click.Context, as_json: bool) -> None:
    config = config_of(ctx)
    approvals, allowed = config.settings.approvals, config.settings.command_allowlist
    own = standing_rules(config)
    if as_json:
        print_json(
            {
                "mode": approvals.mode,
                "file": str(rules_path(config)),
                "rules": columns(own),
                "deny": approvals.deny,
                "allowed": allowed,
                "categories": categories(),
            }
        )
        return
    print(f"mode: {approvals.mode}")
    for pattern in approvals.deny:
        print(f"deny  command  {exposed(pattern)}  (approvals.deny)")
    for text in allowed:
        print(f"allow exactly  {exposed(one_line(text, LINE))}  (command_allowlist)")
    for rule in own:
        people = ", ".join((*rule.who, *rule.where))
        print(f"{rule.decision:5} {rule.effect:7}  {exposed(rule.match)}  {people}".rstrip())
    if not own:
        print(f"No rules of your own in {rules_path(config)}.")
    print()
    print_table([("Category", "What it is"), *categories().items()], (16,))


@command.command(help="What was decided lately, and who answered the questions.")
@click.argument("session", required=False)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--only", type=click.Choice(["allow", "ask", "deny"]), help="Only these decisions.")
@as_json_option
@click.pass_context
def log(
    ctx: click.Context, session: str | None, limit: int, only: str | None, as_json: bool
) -> None:
    async def work(app: App) -> list[Decided]:
        if session:
            ids = [await app.library.find(session)]
        else:
            recent = await app.library.recent(SessionFilter(archived=None), limit=limit)
            ids = [info.id for info in recent]
        found: list[Decided] = []
        for session_id in ids:
            lines = decided(session_id, await app.library.records(session_id))
            found += [line for line in lines if only in (None, line.decision)]
        return sorted(found, key=lambda line: (line.at, line.n))[-limit:]

    lines = with_app(ctx, work)
    if as_json:
        print_json(columns(lines))
        return
    if not lines:
        print("Nothing was decided yet.")
    for line in lines:
        said = f" — {line.answer} by {line.by}" if line.answer else ""
        said = said or (f" — by the {line.decided_by}" if line.decided_by != "policy" else "")
        word = styled(f"{line.decision:5}", MARKS[line.decision])
        print(f"{moment(line.at)}  {word}  {exposed(one_line(line.subject, LINE))}{said}")
        if line.decision != "allow":
            print(f"{'':26}{one_line(line.reason, LINE)}")


command.add_command(redact)
command.add_command(scan)
