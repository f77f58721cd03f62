"""`hermes skills search|install|check|update|audit|tap|snapshot|publish …`: the skill hub."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from hermes.app.app import App
from hermes.codec.json import encode, plain
from hermes.commands.formatting import escape_invisible, one_line, sanitize
from hermes.commands.skills import listing_lines, tree_difference
from hermes.core.errors import HermesError, UsageError
from hermes.surfaces.cli.command_context import apply_style, mark
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    json_output,
    print_output,
    text_output,
    warn,
    with_app,
    yes_option,
)

if TYPE_CHECKING:
    from hermes.skills.hub.hub import PreparedInstall
    from hermes.skills.hub.lock import InstalledSkill, SkillFinding

TEXT_ROWS = 40

source_option = click.option("--source", default="", help="Only from this source.")
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many."
)
force_option = click.option("--force", is_flag=True, help="Despite a warning of the scan.")


@click.command(help="Search for skills of other people.")
@click.argument("query", nargs=-1, required=True)
@source_option
@limit_option
@json_output(with_app)
async def search(app: App, query: tuple[str, ...], source: str, limit: int) -> Output:
    return await _search(app, " ".join(query), source, limit)


@click.command(help="List skills of other people.")
@source_option
@limit_option
@json_output(with_app)
async def browse(app: App, source: str, limit: int) -> Output:
    return await _search(app, "", source, limit)


async def _search(app: App, query: str, source: str, limit: int) -> Output:
    found, problems = await app.skills().hub.search(query, source=source, limit=limit)
    for problem in problems:
        warn(sanitize(problem))
    return Output(found, sanitize("\n".join(listing_lines(found))) or "Nothing found.")


@click.command(help="Inspect a skill before installing it: files, scan, text.")
@click.argument("identifier")
@json_output(with_app)
async def inspect(app: App, identifier: str) -> Output:
    hub = app.skills().hub
    prepared = await hub.prepare(identifier)
    hub.drop(prepared)
    text = prepared.package.files["SKILL.md"].decode("utf-8", "replace")
    return Output(
        {
            "name": prepared.name,
            "listing": plain(prepared.package.listing),
            "files": sorted(prepared.package.files),
            "notes": prepared.package.notes,
            "verdict": prepared.scan.verdict,
            "findings": [plain(each) for each in prepared.scan.findings],
            "allowed": prepared.ruling.allowed,
            "reason": prepared.ruling.reason,
            "content_hash": f"sha256:{prepared.digest}",
        },
        (*_prepared_lines(prepared), *escape_invisible(text).split("\n")[:TEXT_ROWS]),
    )


@click.command(help="Install a skill: owner/repo/path, source/name, a URL, or a bare name.")
@click.argument("identifier")
@click.option("--category", default="", help="Its category here.")
@click.option("--name", default="", help="Its name here.")
@force_option
@yes_option
@as_json_option
@click.pass_context
def install(
    ctx: click.Context,
    identifier: str,
    category: str,
    name: str,
    force: bool,
    yes: bool,
    as_json: bool,
) -> int:
    async def work(app: App) -> InstalledSkill | None:
        return await app.skills().hub.install(
            identifier,
            lambda prepared: _confirm(prepared, yes, quiet=as_json),
            force=force,
            category=category,
            name=name,
        )

    done = with_app(ctx, work)
    line = "Nothing was installed."
    if done is not None:
        line = f"{mark('ok')} {done.install_path} is installed ({len(done.files)} files)."
    return print_output(Output(done, line), as_json=as_json)


def _confirm(prepared: PreparedInstall, yes: bool, *, quiet: bool = False) -> bool:
    if not quiet:
        print("\n".join(_prepared_lines(prepared)))
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask in; add --yes.")
    return click.confirm(f"{'Update' if prepared.before else 'Install'} it?")


def _prepared_lines(prepared: PreparedInstall) -> Iterator[str]:
    listing = prepared.package.listing
    yield f"{apply_style(prepared.name, 'bold')} {one_line(listing.description)}"
    yield f"from {one_line(listing.identifier)} ({listing.trust})  {listing.url}"
    for path, data in sorted(prepared.package.files.items()):
        yield f"  {escape_invisible(path)}  {len(data)} bytes"
    for note in prepared.package.notes:
        yield f"{mark('warn')} {sanitize(note)}"
    yield f"scan: {prepared.scan.verdict}"
    for finding in prepared.scan.findings:
        yield f"  {_finding(finding)}"
    if not prepared.ruling.allowed:
        yield f"{mark('error')} {prepared.ruling.reason}"
    if prepared.before:
        yield escape_invisible(tree_difference(prepared.before, prepared.package.files))


def _finding(finding: SkillFinding) -> str:
    where = f"{finding.file or 'SKILL.md'}:{finding.line}"
    place, text = escape_invisible(where), escape_invisible(finding.text)
    return f"{finding.severity:<8} {finding.id} at {place}  {text}"


@click.command(help="Remove an installed skill; its files stay in the history.")
@click.argument("name")
@click.option("--force", is_flag=True, help="Even if you have edited it.")
@text_output(with_app)
async def uninstall(app: App, name: str, force: bool) -> str:
    await asyncio.to_thread(app.skills().hub.uninstall, name, force=force)
    return f"{mark('ok')} {name} is removed; `hermes skills revert {name}` restores it."


@click.command(help="Check whether installed skills have changed at their source.")
@click.argument("names", nargs=-1)
@json_output(with_app)
async def check(app: App, names: tuple[str, ...]) -> Output:
    found = await app.skills().hub.check(names)
    lines = [f"{each.name:<28} {each.condition}  {sanitize(each.words)}".rstrip() for each in found]
    return Output(found, lines or "Nothing is installed.")


@click.command(help="Update installed skills; each change is scanned and shown first.")
@click.argument("names", nargs=-1)
@force_option
@yes_option
@text_output(with_app)
async def update(app: App, names: tuple[str, ...], force: bool, yes: bool) -> Output:
    hub, failed = app.skills().hub, False
    for name in names or tuple(hub.ledger.list_installed()):
        try:
            done = await hub.update(name, lambda p: _confirm(p, yes), force=force)
            print(f"{name:<28} {done}")
        except HermesError as error:
            failed = True
            print(f"{mark('error')} {name}: {sanitize(str(error))}")
    return Output(None, code=failed)


@click.command(help="Scan installed skills again; --deep scans all skills.")
@click.option("--deep", is_flag=True, help="All skills, not only installed ones.")
@click.option("--log", "show_log", is_flag=True, help="Show the installation log.")
@json_output(with_app)
async def audit(app: App, deep: bool, show_log: bool) -> Output:
    hub = app.skills().hub
    if show_log:
        log = hub.ledger.log()
        return Output(list(log), sanitize("\n".join(log)) or "Nothing was installed yet.")
    found = await asyncio.to_thread(hub.audit, deep=deep)
    lines = []
    for each in found:
        edited = "  (edited by you)" if each.edited else ""
        lines.append(f"{each.name:<28} {each.source:<12} {each.scan.verdict}{edited}")
        lines += [f"  {_finding(finding)}" for finding in each.scan.findings]
    nothing = "Nothing is installed; --deep scans all skills."
    return Output([plain(each) for each in found], lines or nothing)


@click.group(help="Repositories that are searched for skills.")
def tap() -> None:
    pass


@tap.command("list", help="List them.")
@json_output(with_app)
async def tap_list(app: App) -> Output:
    taps = app.skills().ledger.taps()
    return Output(taps, "\n".join(taps))


@tap.command("add", help="Add one: owner/repo or owner/repo/folder.")
@click.argument("repo")
@text_output(with_app)
async def tap_add(app: App, repo: str) -> str:
    return "\n".join(app.skills().hub.add_tap(repo))


@tap.command("remove", help="Remove one.")
@click.argument("repo")
@text_output(with_app)
async def tap_remove(app: App, repo: str) -> str:
    return "\n".join(app.skills().hub.remove_tap(repo))


@click.group(help="The list of installed skills, for another home.")
def snapshot() -> None:
    pass


@snapshot.command("export", help="Write it to a file.")
@click.argument("file", type=click.Path(dir_okay=False))
@text_output()
def snapshot_export(ctx: click.Context, file: str) -> str:
    async def work(app: App) -> bytes:
        return encode(app.skills().hub.snapshot())

    Path(file).write_bytes(with_app(ctx, work) + b"\n")
    return f"{mark('ok')} {file}"


@snapshot.command("import", help="Install the skills of a file; each is scanned.")
@click.argument("file", type=click.File("rb"))
@force_option
@yes_option
@text_output(with_app)
async def snapshot_import(app: App, file: BinaryIO, force: bool, yes: bool) -> Output:
    hub, failed = app.skills().hub, False
    wanted = hub.read_snapshot(file.read())
    for repo in wanted.taps:
        hub.add_tap(repo)
    for each in wanted.skills:
        try:
            done = await hub.install(
                each.identifier,
                lambda p: _confirm(p, yes),
                force=force,
                category=each.category,
                name=each.name,
            )
            same = done is not None and done.content_hash == each.content_hash
            state = "not installed" if done is None else "identical" if same else "newer"
            print(f"{each.name:<28} {state}")
        except HermesError as error:
            failed = True
            print(f"{mark('error')} {each.name}: {sanitize(str(error))}")
    return Output(None, code=failed)


@click.command(help="Propose a skill of yours to a GitHub repository, as a pull request.")
@click.argument("name")
@click.option("--repo", required=True, help="owner/repo")
@yes_option
@text_output()
def publish(ctx: click.Context, name: str, repo: str, yes: bool) -> str:
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Send {name} to {repo}?")):
        raise UsageError("Nothing was sent; add --yes to agree.")
    return f"{mark('ok')} {with_app(ctx, lambda app: app.skills().hub.publish(name, repo))}"


HUB_COMMANDS = (
    search,
    browse,
    inspect,
    install,
    uninstall,
    check,
    update,
    audit,
    tap,
    snapshot,
    publish,
)
