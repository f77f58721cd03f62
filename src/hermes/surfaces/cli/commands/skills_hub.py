"""`hermes skills search|install|check|update|audit|tap|snapshot|publish …`: those of others."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject
from hermes.commands.skill_lines import listing_lines, tree_difference
from hermes.commands.visible import clean, exposed, one_line
from hermes.core.errors import HermesError, UsageError
from hermes.surfaces.cli.commands.sessions_removal import yes_option
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.style import mark, styled

if TYPE_CHECKING:
    from hermes.skills.hub.hub import Audited, Checked, Prepared
    from hermes.skills.hub.listing import Listing
    from hermes.skills.hub.lock import Installed
    from hermes.skills.hub.trust import Finding

TEXT_ROWS = 40

source_option = click.option("--source", default="", help="Only from this source.")
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many."
)
force_option = click.option("--force", is_flag=True, help="Against a caution of the scan.")


@click.command(help="Find skills of other people.")
@click.argument("query", nargs=-1, required=True)
@source_option
@limit_option
@as_json_option
@click.pass_context
def search(
    ctx: click.Context, query: tuple[str, ...], source: str, limit: int, as_json: bool
) -> None:
    _show_found(ctx, " ".join(query), source, limit, as_json)


@click.command(help="Skills of other people, without a question.")
@source_option
@limit_option
@as_json_option
@click.pass_context
def browse(ctx: click.Context, source: str, limit: int, as_json: bool) -> None:
    _show_found(ctx, "", source, limit, as_json)


def _show_found(ctx: click.Context, query: str, source: str, limit: int, as_json: bool) -> None:
    async def work(app: App) -> tuple[tuple[Listing, ...], tuple[str, ...]]:
        return await app.skills().hub.search(query, source=source, limit=limit)

    found, problems = with_app(ctx, work)
    for problem in problems:
        print(f"{styled('warning:', 'warn', sys.stderr)} {clean(problem)}", file=sys.stderr)
    if as_json:
        print_json(columns(found))
    else:
        print(clean("\n".join(listing_lines(found))) or "Nothing found.")


@click.command(help="Look at a skill before it is installed: files, scan, text.")
@click.argument("identifier")
@as_json_option
@click.pass_context
def inspect(ctx: click.Context, identifier: str, as_json: bool) -> None:
    async def work(app: App) -> Prepared:
        hub = app.skills().hub
        prepared = await hub.prepare(identifier)
        hub.drop(prepared)
        return prepared

    prepared = with_app(ctx, work)
    if as_json:
        print_json(_facts(prepared))
        return
    _print_prepared(prepared)
    text = prepared.package.files["SKILL.md"].decode("utf-8", "replace")
    print("\n".join(exposed(text).split("\n")[:TEXT_ROWS]))


@click.command(help="Install a skill: owner/repo/path, source/name, an address, or a bare name.")
@click.argument("identifier")
@click.option("--category", default="", help="Put it there.")
@click.option("--name", default="", help="Call it so.")
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
) -> None:
    async def work(app: App) -> Installed | None:
        return await app.skills().hub.install(
            identifier,
            lambda prepared: _agreed(prepared, yes, quiet=as_json),
            force=force,
            category=category,
            name=name,
        )

    done = with_app(ctx, work)
    if as_json:
        print_json(columns(done) if done else None)
    elif done is None:
        print("Nothing was installed.")
    else:
        print(f"{mark('ok')} {done.install_path} is installed ({len(done.files)} files).")


def _agreed(prepared: Prepared, yes: bool, *, quiet: bool = False) -> bool:
    if not quiet:
        _print_prepared(prepared)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here; --yes agrees.")
    return click.confirm(f"{'Update' if prepared.before else 'Install'} it?")


def _print_prepared(prepared: Prepared) -> None:
    listing = prepared.package.listing
    print(styled(prepared.name, "bold"), one_line(listing.description))
    print(f"from {one_line(listing.identifier)} ({listing.trust})  {listing.url}")
    for path, data in sorted(prepared.package.files.items()):
        print(f"  {exposed(path)}  {len(data)} bytes")
    for note in prepared.package.notes:
        print(f"{mark('warn')} {clean(note)}")
    print(f"scan: {prepared.scan.verdict}")
    for finding in prepared.scan.findings:
        print(f"  {_finding(finding)}")
    if not prepared.ruling.allowed:
        print(f"{mark('error')} {prepared.ruling.reason}")
    if prepared.before:
        print(exposed(tree_difference(prepared.before, prepared.package.files)))


def _finding(finding: Finding) -> str:
    where = f"{finding.file or 'SKILL.md'}:{finding.line}"
    return f"{finding.severity:<8} {finding.id} at {exposed(where)}  {exposed(finding.text)}"


def _facts(prepared: Prepared) -> JsonObject:
    return {
        "name": prepared.name,
        "listing": plain(prepared.package.listing),
        "files": sorted(prepared.package.files),
        "notes": prepared.package.notes,
        "verdict": prepared.scan.verdict,
        "findings": [plain(each) for each in prepared.scan.findings],
        "allowed": prepared.ruling.allowed,
        "reason": prepared.ruling.reason,
        "content_hash": f"sha256:{prepared.digest}",
    }


@click.command(help="Remove a skill that was installed; its files stay in the history.")
@click.argument("name")
@click.option("--force", is_flag=True, help="Also if you have edited it.")
@click.pass_context
def uninstall(ctx: click.Context, name: str, force: bool) -> None:
    async def work(app: App) -> None:
        await asyncio.to_thread(app.skills().hub.uninstall, name, force=force)

    with_app(ctx, work)
    print(f"{mark('ok')} {name} is removed; `hermes skills revert {name}` brings it back.")


@click.command(help="Whether installed skills have changed where they come from.")
@click.argument("names", nargs=-1)
@as_json_option
@click.pass_context
def check(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    async def work(app: App) -> tuple[Checked, ...]:
        return await app.skills().hub.check(names)

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
        return
    for each in found:
        print(f"{each.name:<28} {each.condition}  {clean(each.words)}".rstrip())
    if not found:
        print("Nothing is installed.")


@click.command(help="Update installed skills; each change is scanned and shown before it counts.")
@click.argument("names", nargs=-1)
@force_option
@yes_option
@click.pass_context
def update(ctx: click.Context, names: tuple[str, ...], force: bool, yes: bool) -> None:
    async def work(app: App) -> bool:
        hub, failed = app.skills().hub, False
        for name in names or tuple(hub.ledger.installed()):
            try:
                done = await hub.update(name, lambda p: _agreed(p, yes), force=force)
                print(f"{name:<28} {done}")
            except HermesError as error:
                failed = True
                print(f"{mark('error')} {name}: {clean(str(error))}")
        return failed

    if with_app(ctx, work):
        ctx.exit(1)


@click.command(help="Scan what is installed again; --deep takes all skills.")
@click.option("--deep", is_flag=True, help="All skills, not only installed ones.")
@click.option("--log", "show_log", is_flag=True, help="What was done so far, line by line.")
@as_json_option
@click.pass_context
def audit(ctx: click.Context, deep: bool, show_log: bool, as_json: bool) -> None:
    async def work(app: App) -> tuple[tuple[Audited, ...], tuple[str, ...]]:
        hub = app.skills().hub
        if show_log:
            return (), hub.ledger.log()
        return await asyncio.to_thread(hub.audit, deep=deep), ()

    found, lines = with_app(ctx, work)
    if as_json:
        print_json(list(lines) if show_log else [plain(each) for each in found])
        return
    if show_log:
        print(clean("\n".join(lines)) or "Nothing was installed yet.")
        return
    for each in found:
        edited = "  (edited by you)" if each.edited else ""
        print(f"{each.name:<28} {each.source:<12} {each.scan.verdict}{edited}")
        for finding in each.scan.findings:
            print(f"  {_finding(finding)}")
    if not found:
        print("Nothing is installed; --deep scans all skills.")


@click.group(help="Repositories that are searched for skills.")
def tap() -> None:
    pass


@tap.command("list", help="Which ones.")
@as_json_option
@click.pass_context
def tap_list(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[str, ...]:
        return app.skills().ledger.taps()

    taps = with_app(ctx, work)
    if as_json:
        print_json(taps)
    else:
        print("\n".join(taps))


@tap.command("add", help="One more: owner/repo or owner/repo/folder.")
@click.argument("repo")
@click.pass_context
def tap_add(ctx: click.Context, repo: str) -> None:
    async def work(app: App) -> tuple[str, ...]:
        return app.skills().hub.add_tap(repo)

    print("\n".join(with_app(ctx, work)))


@tap.command("remove", help="No longer this one.")
@click.argument("repo")
@click.pass_context
def tap_remove(ctx: click.Context, repo: str) -> None:
    async def work(app: App) -> tuple[str, ...]:
        return app.skills().hub.remove_tap(repo)

    print("\n".join(with_app(ctx, work)))


@click.group(help="The list of installed skills, to take to another home.")
def snapshot() -> None:
    pass


@snapshot.command("export", help="Write it to a file.")
@click.argument("file", type=click.Path(dir_okay=False))
@click.pass_context
def snapshot_export(ctx: click.Context, file: str) -> None:
    async def work(app: App) -> bytes:
        return encode(app.skills().hub.snapshot())

    Path(file).write_bytes(with_app(ctx, work) + b"\n")
    print(f"{mark('ok')} {file}")


@snapshot.command("import", help="Install what a file lists; each is scanned as always.")
@click.argument("file", type=click.Path(dir_okay=False, exists=True))
@force_option
@yes_option
@click.pass_context
def snapshot_import(ctx: click.Context, file: str, force: bool, yes: bool) -> None:
    raw = Path(file).read_bytes()

    async def work(app: App) -> bool:
        hub, failed = app.skills().hub, False
        wanted = hub.read_snapshot(raw)
        for repo in wanted.taps:
            hub.add_tap(repo)
        for each in wanted.skills:
            try:
                done = await hub.install(
                    each.identifier,
                    lambda p: _agreed(p, yes),
                    force=force,
                    category=each.category,
                    name=each.name,
                )
                same = done is not None and done.content_hash == each.content_hash
                state = "not installed" if done is None else "as it was" if same else "newer"
                print(f"{each.name:<28} {state}")
            except HermesError as error:
                failed = True
                print(f"{mark('error')} {each.name}: {clean(str(error))}")
        return failed

    if with_app(ctx, work):
        ctx.exit(1)


@click.command(help="Offer a skill of yours to a GitHub repository, as a pull request.")
@click.argument("name")
@click.option("--repo", required=True, help="owner/repo")
@yes_option
@click.pass_context
def publish(ctx: click.Context, name: str, repo: str, yes: bool) -> None:
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Send {name} to {repo}?")):
        raise UsageError("Nothing was sent; --yes agrees.")

    async def work(app: App) -> str:
        return await app.skills().hub.publish(name, repo)

    print(f"{mark('ok')} {with_app(ctx, work)}")


COMMANDS = (
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
