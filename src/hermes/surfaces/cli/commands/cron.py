"""`hermes cron`: scheduled jobs, their runs, and a scheduler in the foreground."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, TypeVar

import click

from hermes.app.app import App
from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.commands.cron import OPTIONS, fields_of, job_line, run_line
from hermes.commands.formatting import plural, sanitize
from hermes.core.errors import UsageError
from hermes.cron.checks import job_problems
from hermes.cron.service import OWNER, CronService
from hermes.surfaces.cli.command_context import warn, with_app
from hermes.surfaces.cli.output import CommandGroup, Output, limit_option

F = TypeVar("F", bound=Callable[..., Any])

NO_JOBS = 'There are no jobs; `hermes cron create "daily at 9:00" TASK` creates one.'
# How long a scheduler that is stopped waits for its runs.
DRAIN_SECONDS = 10.0

with_jobs = with_app.part(lambda app: CronService(app.context, app.journal))
command = CommandGroup(help="Schedule tasks: create, list, start and check jobs.")


def job_options(verb: str) -> Callable[[F], F]:
    """The options of `create` or `edit`."""
    kinds: dict[str, dict[str, Any]] = {
        "text": {"metavar": "TEXT"},
        "words": {"metavar": "A,B"},
        "number": {"type": int, "metavar": "N"},
        "list": {"multiple": True, "metavar": "NAME"},
        "flag": {"flag_value": True, "default": None},
        "off": {"flag_value": False, "default": None},
    }

    def declare(function: F) -> F:
        for option in reversed(OPTIONS):
            if option.only in ("", verb):
                names = (option.flag, option.field)
                function = click.option(*names, help=option.help, **kinds[option.kind])(function)
        return function

    return declare


@command.json("List the jobs.", with_jobs)
@click.option("--all", "everything", is_flag=True, help="Include paused and completed jobs.")
async def list_(jobs: CronService, everything: bool) -> Output:
    found = await jobs.all(disabled=everything)
    return Output(found, [sanitize(job_line(job)) for job in found] or NO_JOBS)


@command.json("Create a job.", with_jobs)
@click.argument("schedule")
@click.argument("prompt", required=False, default="")
@job_options("create")
async def create(jobs: CronService, schedule: str, prompt: str, **given: Any) -> Output:
    fields = {**fields_of(given), "schedule": schedule, "prompt": prompt}
    return await _stored(jobs, await jobs.add(fields, OWNER))


command.add_command(command.commands["create"], "add")


@command.json("Change a job; an empty text clears a field.", with_jobs)
@click.argument("reference", metavar="JOB")
@job_options("edit")
async def edit(jobs: CronService, reference: str, **given: Any) -> Output:
    job = await jobs.find(reference)
    fields = fields_of({**given, **_switched(given)}, job)
    return await _stored(jobs, await jobs.change(job["id"], {**fields, **_switched(given)}))


def _switched(given: JsonObject) -> JsonObject:
    """The flags that were switched off, which `fields_of` would drop."""
    return {name: False for name in ("no_agent", "continuity") if given.get(name) is False}


@command.json("Pause a job.", with_jobs)
@click.argument("reference", metavar="JOB")
@click.option("--reason", default="", help="Why, for the list.")
async def pause(jobs: CronService, reference: str, reason: str) -> Output:
    job = await jobs.pause((await jobs.find(reference))["id"], reason=reason)
    return Output(job, sanitize(f"Paused: {job.get('name')}."))


@command.json("Resume a paused job.", with_jobs)
@click.argument("reference", metavar="JOB")
async def resume(jobs: CronService, reference: str) -> Output:
    return await _stored(jobs, await jobs.resume((await jobs.find(reference))["id"]))


@command.json("Remove a job.", with_jobs)
@click.argument("reference", metavar="JOB")
async def remove(jobs: CronService, reference: str) -> Output:
    job = await jobs.remove((await jobs.find(reference))["id"])
    return Output(job, sanitize(f"Removed: {job.get('name')}."))


for alias in ("rm", "delete"):
    command.add_command(command.commands["remove"], alias)


@command.json("Run the scheduler until stopped; with JOB, start that job.", with_app)
@click.argument("reference", metavar="[JOB]", required=False, default="")
@click.option("--now", is_flag=True, help="Run JOB in this process and print its output.")
async def run(app: App, reference: str, now: bool, as_json: bool) -> Output:
    if not reference:
        if now:
            raise UsageError("--now needs a job.")
        return await _run_scheduler(app)
    jobs = CronService(app.context, app.journal)
    job = await jobs.find(reference)
    if now:
        return await _run_here(app, jobs, job, sys.stderr if as_json else sys.stdout)
    job = await jobs.run_now(job["id"])
    await _warn_without_scheduler(jobs)
    return Output(job, sanitize(f"Due now: {job.get('name')}."))


async def _run_scheduler(app: App) -> Output:
    from hermes.hosting.job_sessions import make_scheduler

    scheduler, sessions = make_scheduler(app)
    work = asyncio.ensure_future(scheduler.run())
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.cancel)
    print("The scheduler runs; Ctrl+C stops it.", file=sys.stderr, flush=True)
    try:
        await work
    except asyncio.CancelledError:
        await scheduler.drain(DRAIN_SECONDS)
    finally:
        await sessions.close()
    return Output({"stopped": True}, "The scheduler has stopped.")


async def _run_here(app: App, jobs: CronService, job: JsonObject, to: TextIO) -> Output:
    from hermes.hosting.job_sessions import make_scheduler

    scheduler, sessions = make_scheduler(app)
    sessions.on_text = lambda text: print(sanitize(text), end="", file=to, flush=True)
    try:
        await scheduler.run_job(job["id"])
    finally:
        await sessions.close()
    (done,) = await jobs.runs(job["id"], limit=1)
    return Output(plain(done), ("", sanitize(run_line(done))), code=done.state != "completed")


@command.json("Run what is due, then exit; for the scheduler of the system.", with_app)
async def tick(app: App) -> Output:
    from hermes.hosting.job_sessions import make_scheduler

    scheduler, sessions = make_scheduler(app)
    try:
        started = await scheduler.tick()
        await scheduler.wait()
    finally:
        await sessions.close()
    return Output({"started": started}, f"{plural(started, 'job')} started.")


@command.json("Show whether the jobs run, the next job and what is owed.", with_jobs)
async def status(jobs: CronService) -> Output:
    state = await jobs.state()
    age = f" (seen {state.heartbeat_age_s:.0f} s ago)" if state.heartbeat_age_s is not None else ""
    upcoming = f"{state.next_job} at {state.next_run_at}" if state.next_run_at else "none"
    lines = [
        f"scheduler  {f'running{age}' if state.running else state.note}",
        f"jobs       {state.jobs}, next: {upcoming}",
        *(f"unknown    {run_line(each)}" for each in state.unknown),
        *(f"undelivered {run_line(each)}" for each in state.undelivered),
        *(
            f"waiting    output of {each.job} for {each.target}; a gateway sends it"
            for each in state.waiting
        ),
        *(f"problem    {each}" for each in state.problems),
    ]
    return Output(plain(state), map(sanitize, lines), code=bool(state.jobs) and not state.running)


@command.json("Show the newest runs, of all jobs or of one.", with_jobs)
@click.argument("reference", metavar="[JOB]", required=False, default="")
@limit_option(default=20)
async def runs(jobs: CronService, reference: str, limit: int) -> Output:
    job_id = (await jobs.find(reference))["id"] if reference else ""
    found = await jobs.runs(job_id, limit=limit)
    lines = [sanitize(run_line(each)) for each in found]
    return Output(plain(found), lines or "There are no runs yet.")


command.add_command(command.commands["runs"], "history")


@command.json("Check the jobs: late runs, missing files, unknown targets, failures.", with_app)
async def doctor(app: App) -> Output:
    found = await job_problems(app.context, CronService(app.context, app.journal))
    return Output(found, found or "No problems were found.", code=bool(found))


async def _stored(jobs: CronService, job: JsonObject) -> Output:
    """The confirmation of a stored job."""
    await _warn_without_scheduler(jobs)
    return Output(job, sanitize(jobs.describe(job)))


async def _warn_without_scheduler(jobs: CronService) -> None:
    if warning := await jobs.warning():
        warn(warning)
