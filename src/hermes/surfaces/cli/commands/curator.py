"""`hermes curator`: what becomes of skills of the agent's own that nobody uses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.core.session_request import Opening
from hermes.skills.library import Skilled
from hermes.surfaces.cli.output import as_json_option, columns, moment, print_json, with_app
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.skills.consolidation import Merged
    from hermes.skills.curator import Move
    from hermes.skills.curator_state import CuratorState


AGAIN = "from hermes.surfaces.cli.entry import main; main()"


@click.group(help="Unused skills of the agent's own: archived, never deleted.")
def command() -> None:
    pass


@command.command(help="When it ran last, and what it would do now.")
@as_json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[CuratorState, tuple[Move, ...], tuple[str, ...]]:
        curator = app.skills().curator()
        return curator.state(), curator.plan(), curator.archived()

    state, moves, archived = with_app(ctx, work)
    if as_json:
        print_json({**columns(state), "plan": columns(moves), "archived": archived})
        return
    print(f"{'paused' if state.paused else 'on'}; last run: {_when(state.last_run_at)}")
    _print_moves(moves, "would be")
    print(f"{len(archived)} in the archive")


def _when(at: float) -> str:
    return moment(at) if at else "never"


def _print_moves(moves: tuple[Move, ...], verb: str) -> None:
    for move in moves:
        print(f"{move.name:<28} {verb} {move.to} ({move.idle_days} days without use)")


@command.command(help="Look now.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--consolidate", is_flag=True, help="Let a model merge those about the same, too.")
@click.option("--background", is_flag=True, help="Do not wait; `logs/curator.log` says the rest.")
@as_json_option
@click.pass_context
def run(
    ctx: click.Context, dry_run: bool, consolidate: bool, background: bool, as_json: bool
) -> None:
    if background:
        _run_beside(ctx, as_json=as_json)
        return

    async def work(app: App) -> tuple[tuple[Move, ...], tuple[Merged, ...]]:
        skills = app.skills()
        curator = skills.curator()
        moves = curator.plan() if dry_run else curator.run()
        return moves, await _merged(app, skills, dry_run) if consolidate else ()

    moves, merged = with_app(ctx, work)
    if as_json:
        print_json({"dry_run": dry_run, "moves": columns(moves), "merged": columns(merged)})
        return
    _print_moves(moves, "would be" if dry_run else "is")
    for each in merged:
        verb = "would take" if dry_run else "takes"
        print(f"{each.into:<28} {verb} the place of {', '.join(each.absorbed)}")
    if not moves and not merged:
        print("Nothing to do.")


def _run_beside(ctx: click.Context, *, as_json: bool) -> None:
    """The same command, once more, in a process that outlives this one."""
    import os
    import subprocess

    home = home_of(ctx)
    log = home.folder(home.logs) / "curator.log"
    words = [word for word in sys.argv[1:] if word != "--background"]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", AGAIN, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    if as_json:
        print_json({"process": child.pid, "log": str(log)})
    else:
        print(f"{mark('ok')} Process {child.pid} looks; what it does will be in {log}.")


async def _merged(app: App, skills: Skilled, dry_run: bool) -> tuple[Merged, ...]:
    from hermes.skills.consolidation import Consolidation

    # What it costs is booked in a session of its own.
    purse = await app.open(Opening(source="tool", attended=False))
    return await Consolidation(app.models, app.settings, skills, purse, dry_run=dry_run).run()


@command.command(help="Archive now what was not used for so many days.")
@click.option("--days", type=click.IntRange(min=1), default=90, show_default=True, help="Days.")
@click.pass_context
def prune(ctx: click.Context, days: int) -> None:
    async def work(app: App) -> tuple[Move, ...]:
        return app.skills().curator().run(days)

    moves = with_app(ctx, work)
    _print_moves(moves, "is")
    if not moves:
        print("Nothing to do.")


@command.command(help="No looks by itself.")
@click.pass_context
def pause(ctx: click.Context) -> None:
    _pause(ctx, paused=True)


@command.command(help="Looks by itself again.")
@click.pass_context
def resume(ctx: click.Context) -> None:
    _pause(ctx, paused=False)


def _pause(ctx: click.Context, *, paused: bool) -> None:
    async def work(app: App) -> None:
        app.skills().curator().pause(paused)

    with_app(ctx, work)
    print(f"{mark('ok')} {'paused' if paused else 'on'}")


@command.command(help="Keep a skill whatever happens.")
@click.argument("name")
@click.pass_context
def pin(ctx: click.Context, name: str) -> None:
    _pin(ctx, name, pinned=True)


@command.command(help="Treat a skill like others again.")
@click.argument("name")
@click.pass_context
def unpin(ctx: click.Context, name: str) -> None:
    _pin(ctx, name, pinned=False)


def _pin(ctx: click.Context, name: str, *, pinned: bool) -> None:
    async def work(app: App) -> None:
        skills = app.skills()
        skills.shelf.find(name)
        skills.usages.pin(name, pinned)

    with_app(ctx, work)
    print(f"{mark('ok')} {name} is {'pinned' if pinned else 'not pinned'}.")


@command.command(help="Move a skill to the archive.")
@click.argument("name")
@click.pass_context
def archive(ctx: click.Context, name: str) -> None:
    async def work(app: App) -> str:
        return str(app.skills().curator().archive(name))

    print(f"{mark('ok')} {with_app(ctx, work)}")


@command.command(help="Bring a skill back from the archive.")
@click.argument("name")
@click.pass_context
def restore(ctx: click.Context, name: str) -> None:
    async def work(app: App) -> str:
        return str(app.skills().curator().restore(name))

    print(f"{mark('ok')} {with_app(ctx, work)}")


@command.command("list-archived", help="What is in the archive.")
@as_json_option
@click.pass_context
def list_archived(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[str, ...]:
        return app.skills().curator().archived()

    names = with_app(ctx, work)
    if as_json:
        print_json(names)
    else:
        print("\n".join(names) or "The archive is empty.")


@command.command(help="Make a copy of all skills.")
@click.pass_context
def backup(ctx: click.Context) -> None:
    async def work(app: App) -> str:
        return app.skills().curator().backup()

    print(f"{mark('ok')} {with_app(ctx, work)}")


@command.command(help="Bring back the skills that a copy has and this home has not.")
@click.option("--list", "only_list", is_flag=True, help="Which copies there are.")
@click.option("--id", "stamp", default="", help="This copy; else the newest.")
@click.pass_context
def rollback(ctx: click.Context, only_list: bool, stamp: str) -> None:
    async def work(app: App) -> tuple[str, ...]:
        curator = app.skills().curator()
        return curator.backups() if only_list else curator.rollback(stamp)

    found = with_app(ctx, work)
    print("\n".join(found) or ("There are no copies." if only_list else "Nothing was missing."))
