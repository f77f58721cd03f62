"""`hermes status`, `doctor`, `dump` and `version`: the state of this installation."""

from __future__ import annotations

import platform
import shutil
import ssl
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from hermes.app.app import App
from hermes.codec.json import plain
from hermes.config.check import check_files, check_home, repair_permissions
from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.edit import migrate_file
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.settings import Settings
from hermes.homes.health import (
    confinement_findings,
    index_findings,
    journal_findings,
    login_findings,
    memory_findings,
    model_findings,
    profile_findings,
    rebuild_index,
    skill_findings,
    tool_findings,
)
from hermes.homes.installation import installation
from hermes.homes.status import dump, status
from hermes.plugins.health import plugin_findings
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark, run
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    json_output,
    page_lines,
    print_output,
    with_app,
)
from hermes.version import __version__

OLDEST_PYTHON = (3, 11)
REQUIRED = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml")
OPTIONAL = {"xllamacpp": "models that run inside Hermes (the extra `local`)"}
# program: (what it is for, whether Hermes needs it)
PROGRAMS = {
    "bash": ("commands", True),
    "git": ("work with repositories", False),
    "rg": ("fast search; without it search is slower", False),
}


def python_findings() -> list[Diagnostic]:
    here = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return [fault("python", f"Python {here} is too old", fix="install Python 3.11 or newer")]
    place = "a virtual environment" if sys.prefix != sys.base_prefix else "the system's Python"
    return [ok(f"Python {here} in {place} ({sys.prefix})")]


def package_findings() -> list[Diagnostic]:
    found = []
    for name in REQUIRED:
        installed = _version(name)
        found.append(
            ok(f"{name} {installed}")
            if installed
            else fault("package", f"{name} is missing", fix=f"pip install {name}")
        )
    for name, purpose in OPTIONAL.items():
        installed = _version(name)
        found.append(ok(f"{name} {installed or 'is not installed'}; for {purpose}"))
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def certificate_findings(settings: Settings) -> list[Diagnostic]:
    bundle = settings.network.ca_bundle
    if bundle:
        try:
            ssl.create_default_context(cafile=str(Path(bundle).expanduser()))
        except (OSError, ssl.SSLError) as error:
            words = f"network.ca_bundle {bundle} cannot be used ({error.strerror or error})"
            return [fault("certificates", words, fix="`hermes config explain network.ca_bundle`")]
        return [ok(f"certificates of {bundle}")]
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        return [ok(f"certificates of the system ({paths.cafile or paths.capath})")]
    fix = "install the package ca-certificates, or set network.ca_bundle"
    return [warning("certificates", "the system has no certificates", fix=fix)]


def command_findings() -> list[Diagnostic]:
    """Whether `hermes` in PATH is this installation."""
    found = shutil.which("hermes")
    if found is None:
        fix = f"put {Path(sys.prefix) / 'bin'} into PATH, or link its `hermes` into ~/.local/bin"
        return [warning("command", "`hermes` is not found in PATH", fix=fix)]
    if Path(found).resolve().parent != (Path(sys.prefix) / "bin").resolve():
        return [ok(f"`hermes` in PATH is {found}; this one runs from {sys.prefix}")]
    return [ok(f"`hermes` in PATH is {found}")]


def program_findings() -> list[Diagnostic]:
    return [_program(name, *about) for name, about in PROGRAMS.items()]


def _program(name: str, purpose: str, needed: bool) -> Diagnostic:
    if path := shutil.which(name):
        return ok(f"{name} ({path})")
    report = fault if needed else warning
    return report("program", f"{name} is missing; for {purpose}", fix=f"install {name}")


def approval_findings(settings: Settings) -> list[Diagnostic]:
    return [
        ok("risky effects need approval")
        if settings.approvals.mode == "manual"
        else warning(
            "approvals",
            "approvals are off: only the most dangerous commands are refused",
            fix="`hermes config set approvals.mode manual`",
        ),
        ok("without a user to ask, risky effects are denied")
        if settings.approvals.noninteractive_mode == "deny"
        else warning(
            "approvals",
            "without a user to ask, risky effects are allowed",
            fix="`hermes config set approvals.noninteractive_mode deny`",
        ),
        ok("secrets are masked in output and logs")
        if settings.security.redact_secrets
        else warning(
            "redaction",
            "secrets are not masked",
            fix="`hermes config set security.redact_secrets true`",
        ),
    ]


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


@click.command(help="Show the model, keys (masked), permissions and settings on one page.")
@click.option("--all", "whole", is_flag=True, help="Include what is set up but not in use.")
@click.option("--deep", is_flag=True, help="Also test it: ask the provider, read every record.")
@json_output(with_app)
async def status_command(app: App, whole: bool, deep: bool) -> Output:
    page = await status(app)
    if whole or deep:
        # Only these two options need the slower checks.
        from hermes.homes.status import deep_checks, full_status

        more = await full_status(app, await _plugin_states(app)) if whole else {}
        page = {**page, **more, **(await deep_checks(app) if deep else {})}
    return Output(page, page_lines(page))


async def _plugin_states(app: App) -> dict[str, str]:
    from hermes.plugins.admin import PluginAdmin

    await app.plugins.offer()
    return {
        row.key: row.fault or row.state for row in PluginAdmin(app.run, app.plugins.plugins).rows()
    }


@click.command(help="Print a summary for support requests: no keys, no conversation text.")
@click.option("--show-keys", is_flag=True, help="Include the first and last letters of keys.")
@json_output(with_app)
async def dump_command(app: App, show_keys: bool) -> Output:
    page = await dump(app, with_keys=show_keys)
    return Output(page, page_lines(page))


@click.command(help="Print the version; `hermes update --check` looks for a newer one.")
@json_output()
def version_command(ctx: click.Context) -> Output:
    here, python = installation(), platform.python_version()
    data = {
        "version": __version__,
        "python": python,
        "home": str(home_of(ctx).root),
        "installed": here.kind,
        "place": str(here.path),
    }
    return Output(data, f"hermes {__version__} (Python {python})")
