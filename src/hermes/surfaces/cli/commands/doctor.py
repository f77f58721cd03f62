"""`hermes doctor`: look at everything, say what is wrong, mend what is safe to mend."""

from __future__ import annotations

import click

from hermes.codec.json import encode, plain
from hermes.config.check import check_files, check_home, mend_permissions
from hermes.config.edit import migrate_file
from hermes.config.findings import Finding
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.homes.checkups import (
    login_findings,
    memory_findings,
    profile_findings,
    tool_findings,
)
from hermes.homes.health import (
    index_findings,
    journal_findings,
    model_findings,
    rebuild_index,
    skill_findings,
    workplace_findings,
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
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark, styled

Section = tuple[str, list[Finding]]


@click.command(help="Check this installation and say how to mend it.")
@click.option("--fix", "mend", is_flag=True, help="Mend what is safe to mend.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, mend: bool, as_json: bool) -> int:
    config = config_of(ctx, tell=False)
    if mend:
        for line in mended(config.home):
            click.echo(f"{styled('mended', 'ok')} {line}", err=as_json)
        config = config_of(ctx, tell=False)
    sections = run(examined(config))
    if as_json:
        print(encode([_plain(name, found) for name, group in sections for found in group]).decode())
    else:
        _print(sections)
    findings = [finding for _, group in sections for finding in group]
    return 1 if any(finding.level == "error" for finding in findings) else 0


async def examined(config: Config) -> list[Section]:
    """Every section with its findings."""
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
        ("Protection", [*approval_findings(settings), *await workplace_findings(config)]),
    ]


def mended(home: Home) -> list[str]:
    """What was done: only things that lose nothing."""
    done = [f"{path} is private now" for path in mend_permissions(home)]
    if migrate_file(home):
        done.append("config.yaml is of the newest version now; the old one is kept beside it")
    if any(finding.level != "ok" for finding in run(index_findings(home))):
        run(rebuild_index(home))
        done.append("the search index was made anew")
    return done


def _plain(section: str, finding: Finding) -> dict[str, object]:
    return {"section": section, **plain(finding)}


def _print(sections: list[Section]) -> None:
    for name, group in sections:
        print(styled(name, "bold"))
        for finding in group:
            print(f"  {mark(finding.level)} {finding.text}")
    fixes = [finding for _, group in sections for finding in group if finding.fix]
    if fixes:
        print(styled("\nWhat to do", "bold"))
    for number, finding in enumerate(fixes, start=1):
        print(f"  {number}. {styled(finding.text, finding.level)}\n     → {finding.fix}")
