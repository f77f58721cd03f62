"""`hermes skills search|install|check|update|audit|tap|snapshot|publish …`: the skill hub."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from hermes.codec.json import encode, plain
from hermes.commands.formatting import escape_invisible, one_line, sanitize
from hermes.commands.skills import listing_lines, tree_difference
from hermes.core.errors import HermesError, UsageError
from hermes.surfaces.cli.command_context import apply_style, mark, warn, with_app
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, limit_option, yes_option

if TYPE_CHECKING:
    from hermes.policy.scan.rules import ScanFinding
    from hermes.skills.hub.hub import PreparedInstall
    from hermes.skills.hub.lock import SnapshotSkill
    from hermes.skills.hub.skill_hub import SkillHub

TEXT_ROWS = 40

hub_commands = CommandGroup()
with_hub = with_app.part(lambda app: app.skills().hub)

source_option = click.option("--source", default="", help="Search only this source.")
force_option = click.option("--force", is_flag=True, help="Install despite scan warnings.")


@hub_commands.json("Search the skill hub.", with_hub)
@source_option
@limit_option(default=20)
async def search(hub: SkillHub, query: tuple[str, ...], source: str, limit: int) -> Output:
    return await _search(hub, " ".join(query), source, limit)


@hub_commands.json("List the skills of the hub.", with_hub)
@source_option
@limit_option(default=20)
async def browse(hub: SkillHub, source: str, limit: int) -> Output:
    return await _search(hub, "", source, limit)


async def _search(hub: SkillHub, query: str, source: str, limit: int) -> Output:
    found, problems = await hub.search(query, source=source, limit=limit)
    for problem in problems:
        warn(sanitize(problem))
    return Output(found, sanitize("\n".join(listing_lines(found))) or "Nothing found.")


@hub_commands.json(
    "Show the files, the scan and the text of a skill before you install it.", with_hub
)
async def inspect(hub: SkillHub, identifier: str) -> Output:
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


@hub_commands.json("Install a skill by owner/repo/path, source/name, URL or name.")
@click.option("--category", default="", help="Put the skill into this category.")
@click.option("--name", default="", help="Install the skill under this name.")
@force_option
@yes_option
def install(
    ctx: click.Context,
    identifier: str,
    category: str,
    name: str,
    force: bool,
    yes: bool,
    as_json: bool,
) -> Output:
    done = with_hub(
        ctx,
        lambda hub: hub.install(
            identifier,
            lambda prepared: _confirm(prepared, yes, quiet=as_json),
            force=force,
            category=category,
            name=name,
        ),
    )
    line = "Nothing was installed."
    if done is not None:
        line = f"{mark('ok')} {done.install_path} is installed ({len(done.files)} files)."
    return Output(done, line)


def _confirm(prepared: PreparedInstall, yes: bool, *, quiet: bool = False) -> bool:
    if not quiet:
        print("\n".join(_prepared_lines(prepared)))
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("Without a terminal, confirm with --yes.")
    return click.confirm(f"{'Update' if prepared.before else 'Install'} this skill?")


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


def _finding(finding: ScanFinding) -> str:
    where = f"{finding.file or 'SKILL.md'}:{finding.line}"
    location, text = escape_invisible(where), escape_invisible(finding.text)
    return f"{finding.severity:<8} {finding.id} at {location}  {text}"


@hub_commands.text("Remove an installed skill; its history stays.", with_hub)
@click.option("--force", is_flag=True, help="Remove the skill even if you have edited it.")
def uninstall(hub: SkillHub, name: str, force: bool) -> str:
    hub.uninstall(name, force=force)
    return f"{mark('ok')} {name} is removed; `hermes skills revert {name}` restores it."


@hub_commands.json("Check whether installed skills have changed at their source.", with_hub)
async def check(hub: SkillHub, names: tuple[str, ...] = ()) -> Output:
    found = await hub.check(names)
    lines = [f"{each.name:<28} {each.condition}  {sanitize(each.words)}".rstrip() for each in found]
    return Output(found, lines or "Nothing is installed.")


@hub_commands.text("Update installed skills, after a scan and a confirmation.", with_hub)
@force_option
@yes_option
async def update(hub: SkillHub, *, names: tuple[str, ...] = (), force: bool, yes: bool) -> Output:
    return await _each(
        (name, hub.update(name, lambda p: _confirm(p, yes), force=force))
        for name in names or tuple(hub.ledger.list_installed())
    )


async def _each(work: Iterable[tuple[str, Coroutine[Any, Any, str]]]) -> Output:
    """Prints the result for each skill as soon as it is known. A failure does not stop the rest."""
    failed = False
    for name, update in work:
        try:
            print(f"{name:<28} {await update}")
        except HermesError as error:
            failed = True
            print(f"{mark('error')} {name}: {sanitize(str(error))}")
    return Output(None, code=failed)


@hub_commands.json("Scan installed skills again.", with_hub)
@click.option("--deep", is_flag=True, help="Scan all skills, not only installed ones.")
@click.option("--log", "show_log", is_flag=True, help="Show the installation log, not a scan.")
def audit(hub: SkillHub, deep: bool, show_log: bool) -> Output:
    if show_log:
        log = hub.ledger.log()
        return Output(list(log), sanitize("\n".join(log)) or "Nothing was installed yet.")
    audits = hub.audit(deep=deep)
    lines = []
    for each in audits:
        edited = "  (edited by you)" if each.edited else ""
        lines.append(f"{each.name:<28} {each.source:<12} {each.scan.verdict}{edited}")
        lines += [f"  {_finding(finding)}" for finding in each.scan.findings]
    nothing = "Nothing is installed; --deep scans all skills."
    return Output([plain(each) for each in audits], lines or nothing)


tap = CommandGroup("tap", help="Choose the repositories that the hub searches.")


@tap.json("List the repositories.", with_hub, name="list")
def tap_list(hub: SkillHub) -> Output:
    return Output(hub.ledger.taps(), hub.ledger.taps())


@tap.text("Add a repository: owner/repo or owner/repo/folder.", with_hub, name="add")
def tap_add(hub: SkillHub, repo: str) -> Iterable[str]:
    return hub.add_tap(repo)


@tap.text("Remove a repository.", with_hub, name="remove")
def tap_remove(hub: SkillHub, repo: str) -> Iterable[str]:
    return hub.remove_tap(repo)


snapshot = CommandGroup("snapshot", help="Copy the list of installed skills to another home.")


@snapshot.text("Write the list of installed skills to a file.", with_hub, name="export")
@click.argument("file", type=click.Path(dir_okay=False))
def snapshot_export(hub: SkillHub, file: str) -> str:
    Path(file).write_bytes(encode(hub.ledger.snapshot()) + b"\n")
    return f"{mark('ok')} {file}"


@snapshot.text("Install the skills of a file, after a scan.", with_hub, name="import")
@click.argument("file", type=click.File("rb"))
@force_option
@yes_option
async def snapshot_import(hub: SkillHub, file: BinaryIO, force: bool, yes: bool) -> Output:
    from hermes.skills.hub.lock import read_snapshot

    wanted = read_snapshot(file.read())
    for repo in wanted.taps:
        hub.add_tap(repo)

    async def install(skill: SnapshotSkill) -> str:
        done = await hub.install(
            skill.identifier,
            lambda p: _confirm(p, yes),
            force=force,
            category=skill.category,
            name=skill.name,
        )
        same = done is not None and done.content_hash == skill.content_hash
        return "not installed" if done is None else "identical" if same else "newer"

    return await _each((skill.name, install(skill)) for skill in wanted.skills)


@hub_commands.text("Propose a skill to a GitHub repository, as a pull request.")
@click.option("--repo", required=True, metavar="OWNER/REPO", help="Use this GitHub repository.")
@yes_option
def publish(ctx: click.Context, name: str, repo: str, yes: bool) -> str:
    confirm(f"Publish {name} in {repo}?", yes=yes, otherwise="Nothing was sent.")
    return f"{mark('ok')} {with_hub(ctx, lambda hub: hub.publish(name, repo))}"


hub_commands.add_command(tap)
hub_commands.add_command(snapshot)
