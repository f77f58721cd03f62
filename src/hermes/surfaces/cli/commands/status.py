"""`hermes status`, `doctor`, `dump` and `version`: the state of this installation."""

from __future__ import annotations

import platform
import shlex
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
from hermes.config.extras import add_command
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.settings import Settings
from hermes.homes.extras import extra_rows
from hermes.homes.health import (
    confinement_findings,
    index_findings,
    job_findings,
    journal_findings,
    login_findings,
    memory_findings,
    model_findings,
    profile_findings,
    rebuild_index,
    skill_findings,
    tool_findings,
)
from hermes.homes.installation import installation, installer
from hermes.homes.status import dump, status
from hermes.homes.work_files import storage_findings
from hermes.plugins.health import plugin_findings
from hermes.surfaces.cli.command_context import (
    apply_style,
    config_of,
    home_of,
    load_name,
    mark,
    run,
    with_app,
)
from hermes.surfaces.cli.output import Output, json_command, page_lines
from hermes.version import __version__

# Surfaces do not import each other, so what the gateway reports is loaded by name.
GATEWAY_FINDINGS = "hermes.surfaces.gateway.status:gateway_findings"
GATEWAY_SECTION = "hermes.surfaces.gateway.status:status_section"
OLDEST_PYTHON = (3, 11)
REQUIRED = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml")
FOR_DEVELOPERS = ("docs", "dev")
# program: (what it is for, whether Hermes needs it)
PROGRAMS = {
    "bash": ("commands", True),
    "git": ("repositories", False),
    "rg": ("fast search", False),
}


def python_findings() -> list[Diagnostic]:
    here = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return [fault("python", f"Python {here} is too old", fix="install Python 3.11 or newer")]
    environment = (
        "a virtual environment" if sys.prefix != sys.base_prefix else "the system's Python"
    )
    return [ok(f"Python {here} in {environment} ({sys.prefix})")]


def package_findings() -> list[Diagnostic]:
    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    required = [
        ok(f"{name} {found}")
        if (found := installed(name))
        else fault("package", f"{name} is missing", fix=shlex.join(installer("install", name)))
        for name in REQUIRED
    ]
    optional = [
        ok(f"the extra {row.name} is installed ({row.purpose})")
        if row.installed
        else ok(f"the extra {row.name} is not installed ({row.purpose}; `{add_command(row.name)}`)")
        for row in extra_rows()
        if row.name not in FOR_DEVELOPERS
    ]
    return [*required, *optional]


def certificate_findings(settings: Settings) -> list[Diagnostic]:
    bundle = settings.network.ca_bundle
    if bundle:
        try:
            ssl.create_default_context(cafile=str(Path(bundle).expanduser()))
        except (OSError, ssl.SSLError) as error:
            message = f"network.ca_bundle {bundle} cannot be used ({error.strerror or error})"
            return [fault("certificates", message, fix="`hermes config explain network.ca_bundle`")]
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
    found = []
    for name, (purpose, needed) in PROGRAMS.items():
        report = fault if needed else warning
        missing = report(
            "program", f"{name} is missing; it is needed for {purpose}", fix=f"install {name}"
        )
        found.append(ok(f"{name} ({path})") if (path := shutil.which(name)) else missing)
    return found


def approval_findings(settings: Settings) -> list[Diagnostic]:
    approvals = settings.approvals
    # Whether it holds, what then holds, what else, and the safe setting.
    checks = (
        (
            approvals.mode != "off",
            f"risky effects need approval (approvals.mode {approvals.mode})",
            "approvals are off: only the most dangerous effects are denied",
            "approvals.mode manual",
        ),
        (
            approvals.noninteractive_mode == "deny",
            "without a user to ask, risky effects are denied",
            "without a user to ask, risky effects are allowed",
            "approvals.noninteractive_mode deny",
        ),
        (
            settings.security.redact_secrets,
            "secrets are masked in output and logs",
            "secrets are not masked",
            "security.redact_secrets true",
        ),
    )
    return [
        ok(good) if holds else warning(key.partition(".")[0], bad, fix=f"`hermes config set {key}`")
        for holds, good, bad, key in checks
    ]


Section = tuple[str, list[Diagnostic]]


@json_command("Check this installation and explain how to fix problems.")
@click.option("--fix", is_flag=True, help="Fix the problems that are safe to fix.")
def doctor_command(ctx: click.Context, fix: bool, as_json: bool) -> Output:
    config = config_of(ctx, quiet=True)
    if fix:
        for line in repair(config.home):
            click.echo(f"{apply_style('fixed', 'ok')} {line}", err=as_json)
        config = config_of(ctx, quiet=True)
    sections = run(examine(config))
    data = [{"section": name, **plain(each)} for name, group in sections for each in group]
    failed = any(each.level == "error" for _, group in sections for each in group)

    def lines() -> Iterator[str]:
        for name, group in sections:
            yield apply_style(name, "bold")
            for finding in group:
                yield f"  {mark(finding.level)} {finding.text}"
        fixes = [finding for _, group in sections for finding in group if finding.fix]
        if fixes:
            yield apply_style("\nWhat to do", "bold")
        for number, finding in enumerate(fixes, start=1):
            yield f"  {number}. {apply_style(finding.text, finding.level)}\n     → {finding.fix}"

    return Output(data, lines(), code=failed)


async def examine(config: Config) -> list[Section]:
    settings = config.settings
    return [
        ("Python", python_findings()),
        ("Packages", package_findings()),
        ("Certificates", certificate_findings(settings)),
        ("Home", list(check_home(config.home))),
        ("Settings", list(check_files(config))),
        ("Profiles", profile_findings(config.home)),
        ("Model", await model_findings(config)),
        ("Logins", await login_findings(config)),
        ("Journal", await journal_findings(config.home)),
        ("Search index", await index_findings(config.home)),
        ("Storage", storage_findings(config)),
        ("Memory", memory_findings(config)),
        ("Skills", skill_findings(config)),
        ("Tools", tool_findings(config)),
        ("Jobs", await job_findings(config)),
        ("Plugins", await plugin_findings(config)),
        ("Gateway", load_name(GATEWAY_FINDINGS)(config)),
        ("Programs", [*command_findings(), *program_findings()]),
        ("Protection", [*approval_findings(settings), *await confinement_findings(config)]),
    ]


def repair(home: Home) -> list[str]:
    """What was fixed: only changes that lose nothing."""
    done = [f"only you can read {path} now" for path in repair_permissions(home)]
    if migrate_file(home):
        done.append("config.yaml is migrated to the newest version; the old file is kept")
    if any(finding.level != "ok" for finding in run(index_findings(home))):
        run(rebuild_index(home))
        done.append("the search index is rebuilt")
    return done


@json_command("Show the model, keys (masked), permissions and settings on one page.", with_app)
@click.option("--all", "whole", is_flag=True, help="Also show what is configured but not used.")
@click.option("--deep", is_flag=True, help="Also call the provider and read every record.")
async def status_command(app: App, whole: bool, deep: bool) -> Output:
    page = await status(app)
    page["Gateway"] = await load_name(GATEWAY_SECTION)(app)
    # Only these two options need the slower checks.
    if whole:
        from hermes.homes.status import full_status
        from hermes.plugins.admin import PluginAdmin

        await app.plugins.offer()
        rows = PluginAdmin(app.context, app.plugins.plugins).rows()
        page |= await full_status(app, {row.key: row.fault or row.state for row in rows})
    if deep:
        from hermes.homes.status import deep_checks

        page |= await deep_checks(app)
    return Output(page, page_lines(page))


@json_command("Print a summary for support requests, without keys and conversations.", with_app)
@click.option("--show-keys", is_flag=True, help="Include the first and last characters of keys.")
async def dump_command(app: App, show_keys: bool) -> Output:
    page = await dump(app, with_keys=show_keys)
    return Output(page, page_lines(page))


@json_command("Print the version.")
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
