"""`/cron`, and the options and texts about scheduled jobs for every surface."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes.codec.values import JsonObject
from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import CommandContext, SlashCommand
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.cron.record import Actor
    from hermes.cron.service import CronService
    from hermes.journal.due_times import DueTime

NO_JOBS = 'There are no jobs; `/cron add "daily at 9:00" TASK` adds one.'
NAME_CHARS = 30


class JobOption(NamedTuple):
    """An option of `cron create` and `cron edit`."""

    flag: str
    field: str
    kind: Literal["text", "number", "flag", "off", "list", "words"]
    help: str
    only: Literal["", "create", "edit"] = ""


OPTIONS = (
    JobOption("--name", "name", "text", "Name of the job."),
    JobOption(
        "--deliver", "deliver", "text", "Where output goes: local, origin, all, PLATFORM[:CHAT]."
    ),
    JobOption("--repeat", "repeat", "number", "Stop after N runs; 0 for never."),
    JobOption("--skill", "skills", "list", "Load this skill (repeatable)."),
    JobOption("--script", "script", "text", "Run this file of HOME/scripts first."),
    JobOption("--no-agent", "no_agent", "flag", "Deliver the output of the script as it is."),
    JobOption("--agent", "no_agent", "off", "Let the agent answer again.", "edit"),
    JobOption("--workdir", "workdir", "text", "Work in this folder."),
    JobOption("--model", "model", "text", "Use this model."),
    JobOption("--provider", "provider", "text", "Use this provider of the model."),
    JobOption("--paused", "paused", "flag", "Store the job without starting it.", "create"),
    JobOption(
        "--context-from", "context_from", "list", "Show the output of that job (repeatable)."
    ),
    JobOption("--continuity", "continuity", "flag", "Show the output of the previous run."),
    JobOption("--no-continuity", "continuity", "off", "Do not show it.", "edit"),
    JobOption("--toolsets", "enabled_toolsets", "words", "Offer only these toolsets."),
    JobOption("--schedule", "schedule", "text", "Change the schedule.", "edit"),
    JobOption("--prompt", "prompt", "text", "Change the task.", "edit"),
    JobOption("--add-skill", "add_skill", "list", "Add a skill.", "edit"),
    JobOption("--remove-skill", "remove_skill", "list", "Remove a skill.", "edit"),
    JobOption("--clear-skills", "clear_skills", "flag", "Remove all skills.", "edit"),
)


def fields_of(given: JsonObject, job: JsonObject | None = None) -> JsonObject:
    """The fields of a job from options. Changes of its skills are applied to those that it has."""
    fields = {name: value for name, value in given.items() if value not in (None, (), False)}
    for option in OPTIONS:
        if option.kind == "words" and option.field in fields:
            words = str(fields[option.field]).split(",")
            fields[option.field] = [word.strip() for word in words if word.strip()]
        elif option.kind == "list" and fields.get(option.field) == ("",):
            fields[option.field] = ()
    added, removed = fields.pop("add_skill", ()), fields.pop("remove_skill", ())
    is_cleared = fields.pop("clear_skills", False)
    if job is not None and (added or removed or is_cleared):
        kept = [] if is_cleared else [name for name in job["skills"] if name not in removed]
        fields["skills"] = list(dict.fromkeys((*kept, *added)))
    return fields


def parse_line(
    words: Sequence[str], verb: Literal["create", "edit"]
) -> tuple[list[str], JsonObject]:
    """Split the words of a line into arguments and options. Raise UsageError."""
    known = {each.flag: each for each in OPTIONS if each.only in ("", verb)}
    arguments: list[str] = []
    given: JsonObject = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            arguments.append(word)
            continue
        option = known.get(word)
        if option is None:
            raise UsageError(f"There is no option {word}; known: {', '.join(known)}.")
        if option.kind in ("flag", "off"):
            given[option.field] = option.kind == "flag"
        elif not rest:
            raise UsageError(f"{word} needs a value.")
        elif option.kind == "list":
            given[option.field] = (*given.get(option.field, ()), rest.pop(0))
        else:
            value = rest.pop(0)
            given[option.field] = _number(word, value) if option.kind == "number" else value
    return arguments, given


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The line cannot be read: {error}.") from error


def _number(flag: str, text: str) -> int:
    if not text.lstrip("-").isdigit():
        raise UsageError(f"{flag} needs a number, not {text!r}.")
    return int(text)


async def cron(here: CommandContext, argument: str) -> str | None:
    jobs, actor = _jobs(here)
    verb, _, rest = argument.partition(" ")
    words = _split(rest)
    match verb, words:
        case (("" | "list"), ([] | ["--all"])):
            found = await jobs.all(actor, disabled=bool(words))
            lines = [job_line(job) for job in found] or [NO_JOBS]
        case (("add" | "create"), [_, *_]):
            lines = [await add_job(jobs, actor, words)]
        case "edit", [reference, *changes]:
            job = await jobs.find(reference, actor)
            _, given = parse_line(changes, "edit")
            lines = [jobs.describe(await jobs.change(job["id"], fields_of(given, job), actor))]
        case (("pause" | "resume" | "run" | "remove" | "rm" | "delete"), [_, *_]):
            return await _act(jobs, actor, verb, words)
        case "runs", ([] | [_]):
            job_id = (await jobs.find(words[0], actor))["id"] if words else ""
            lines = [run_line(each) for each in await jobs.runs(job_id, actor)]
            return sanitize("\n".join(lines) or "There are no runs yet.")
        case _:
            return None
    return sanitize("\n".join(filter(None, (*lines, await jobs.warning()))))


async def add_job(jobs: CronService, actor: Actor, words: Sequence[str]) -> str:
    """Add a job from the words SCHEDULE, PROMPT and options; returns the confirmation."""
    arguments, given = parse_line(words, "create")
    if not arguments:
        raise UsageError('Say when the job runs, for example "every 2h".')
    schedule, *prompt = arguments
    fields = {**fields_of(given), "schedule": schedule, "prompt": " ".join(prompt)}
    return jobs.describe(await jobs.add(fields, actor))


async def _act(jobs: CronService, actor: Actor, verb: str, words: list[str]) -> str:
    job = await jobs.find(words[0], actor)
    name = f"{job.get('name')} ({job['id']})"
    match verb:
        case "pause":
            await jobs.pause(job["id"], actor, reason=" ".join(words[1:]).removeprefix("--reason "))
            return sanitize(f"Paused: {name}.")
        case "resume":
            text = jobs.describe(await jobs.resume(job["id"], actor))
        case "run":
            await jobs.run_now(job["id"], actor)
            text = f"Due now: {name}."
        case _:
            await jobs.remove(job["id"], actor)
            return sanitize(f"Removed: {name}.")
    return sanitize("\n".join(filter(None, (text, await jobs.warning()))))


def _jobs(here: CommandContext) -> tuple[CronService, Actor]:
    from hermes.cron.record import Actor
    from hermes.cron.service import CronService

    opened = here.session.transcript.opened
    actor = Actor(
        by="chat",
        principal=opened.principal if opened else "owner",
        person=opened.person if opened else "",
        origin=here.app.shared.job_origin(here.session.id),
    )
    return CronService(here.app.context, here.app.journal), actor


def job_line(job: JsonObject) -> str:
    """One line about a job for lists."""
    name = one_line(str(job.get("name")), NAME_CHARS)
    upcoming = job.get("next_run_at") or "-"
    state = str(job.get("state")) if job.get("enabled") else str(job.get("state") or "paused")
    last = job.get("last_status") or "-"
    return (
        f"{job.get('id')}  {name:{NAME_CHARS}}  {job.get('schedule_display')}  next {upcoming}  "
        f"{state}  last {last}  to {job.get('deliver')}"
    )


def run_line(run: DueTime) -> str:
    """One line about a run for lists."""
    from hermes.cron.schedule import format_time

    parts = (
        format_time(run.due_at),
        run.job,
        f"{run.state:9}",
        run.delivery,
        one_line(run.error, 160),
        run.session_id,
    )
    return "  ".join(part for part in parts if part)


CRON_COMMANDS = (
    SlashCommand(
        "cron [list|add WHEN TASK|edit JOB|pause JOB|resume JOB|run JOB|remove JOB|runs [JOB]]",
        "List, add, change, pause, start and remove scheduled jobs.",
        cron,
    ),
)
