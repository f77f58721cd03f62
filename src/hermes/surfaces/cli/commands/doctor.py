"""`hermes doctor`: check the installation, report problems, fix what is safe to fix."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hermes.codec.json import plain
from hermes.config.check import check_files, check_home, repair_permissions
from hermes.config.edit import migrate_file
from hermes.config.findings import Diagnostic
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.homes.checkups import (
    login_findings,
    memory_findings,
    profile_findings,
    tool_findings,
)
from hermes.homes.health import (
    confinement_findings,
    index_findings,
    journal_findings,
    model_findings,
    rebuild_index,
    skill_findings,
)
from hermes.plugins.health import plugin_findings
from hermes.surfaces.cli.checks import (
    approval_findings,
    certificate_findings,
    command_findings,
    package_findings,
    program_findings,
    python_findings,
)
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import Output, as_json_option, print_output
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import apply_style, mark

Section = tuple[str, list[Diagnostic]]


@click.command(help="Check this installation and say how to fix problems.")
@click.option("--fix", is_flag=True, help="Fix what is safe to fix.")
@as_json_option
@click.pass_context
def doctor_command(ctx: click.Context, fix: bool, as_json: bool) -> int:
    config = config_of(ctx, tell=False)
    if fix:
        for line in repair(config.home):
            click.echo(f"{apply_style('fixed', 'ok')} {line}", err=as_json)
        config = config_of(ctx, tell=False)
    sections = run(examine(config))
    data = [{"section": name, **plain(each)} for name, group in sections for each in group]
    failed = any(each.level == "error" for _, group in sections for each in group)
    return print_output(Output(data, _lines(sections), code=failed), as_json=as_json)


async def examine(config: Config) -> list[Section]:
    settings = config.settings
    return [
        ("Python", python_findings()),
        ("Packages", package_findings()),
        ("Certificates", certificate_findings(settings)),
        ("Home", list(check_home(config.home))),
        ("Settings", list(check_files(config))),
        ("Profiles", profile_findings(config.home)),
        ("Model", model_findings(config)),
        ("Logins", await login_findings(config)),
        ("Journal", await journal_findings(config.home)),
        ("Search index", await index_findings(config.home)),
        ("Memory", memory_findings(config)),
        ("Skills", skill_findings(config)),
        ("Tools", tool_findings(config)),
        ("Plugins", await plugin_findings(config)),
        ("Programs", [*command_findings(), *program_findings()]),
        ("Protection", [*approval_findings(settings), *await confinement_findings(config)]),
    ]


def repair(home: Home) -> list[str]:
    """What was fixed: only changes that lose nothing."""
    done = [f"{path} is private now" for path in repair_permissions(home)]
    if migrate_file(home):
        done.append("config.yaml was migrated to the newest version; a copy of the old one is kept")
    if any(finding.level != "ok" for finding in run(index_findings(home))):
        run(rebuild_index(home))
        done.append("the search index was rebuilt")
    return done


def _lines(sections: list[Section]) -> Iterator[str]:
    for name, group in sections:
        yield apply_style(name, "bold")
        for finding in group:
            yield f"  {mark(finding.level)} {finding.text}"
    fixes = [finding for _, group in sections for finding in group if finding.fix]
    if fixes:
        yield apply_style("\nWhat to do", "bold")
    for number, finding in enumerate(fixes, start=1):
        yield f"  {number}. {apply_style(finding.text, finding.level)}\n     → {finding.fix}"
