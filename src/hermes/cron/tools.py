"""The tool with which the model schedules jobs for the user."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, Schedule
from hermes.core.errors import NotFound, ToolError, UsageError
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.cron.record import Actor
from hermes.cron.schedule import zone_name
from hermes.cron.service import CronService

PREVIEW_CHARS = 100
CLOSED = "Scheduled jobs are not available in this session."
_LISTED = (
    "name", "skills", "next_run_at", "last_run_at", "last_status", "state", "deliver", "repeat",
    "no_agent", "created_by",
)  # fmt: skip
# Not for the model.
_INTERNAL = ("base_url", "person", "principal", "timezone", "then_run_at", "attempt", "origin")
_ACTIONS = {"pause": "pause", "resume": "resume", "run": "run_now", "remove": "remove"}


class CronToolService:
    """The jobs that a session may see, and on whose behalf it acts."""

    def __init__(self, jobs: CronService | None = None, actor: Actor | None = None) -> None:
        self.jobs = jobs
        self.actor = actor or Actor(by="agent")


def _effects(_context: PathContext, arguments: JsonObject) -> list[Effect]:
    action = arguments["action"]
    if action == "list":
        return []
    given = (arguments[name] for name in ("job_id", "schedule", "prompt"))
    return [Schedule(action=action, text=" ".join(text for text in given if text))]


@tool(
    effects=_effects,
    toolset="cronjob",
    conditional=True,
    display=ToolDisplay(icon="⏰", verb="schedule", detail="{action} {schedule}{job_id}"),
)
async def cronjob(
    ctx: ToolContext,
    action: Literal["create", "list", "update", "pause", "resume", "remove", "run"],
    job_id: str = "",
    schedule: Annotated[str, "30m, every 2h, weekdays at 9:00, 0 9 * * 1-5, ISO time"] = "",
    prompt: Annotated[str, "Complete task; the run knows nothing else"] = "",
    options: Annotated[
        JsonObject,
        "name, deliver, skills, repeat, script, no_agent, model, provider, workdir, context_from, "
        "continuity, enabled_toolsets",
    ] = {},  # noqa: B006
) -> ToolOutput:
    """Run tasks later or regularly. Tell the user schedule, time zone and next run."""
    service = ctx.service(CronToolService)
    if service.jobs is None:
        raise ToolError(CLOSED)
    fields = {**_flat(options), "schedule": schedule, "prompt": prompt}
    try:
        answer = await _act(service.jobs, service.actor, action, job_id, fields)
    except (NotFound, UsageError) as error:
        return _output({"success": False, "error": str(error)}, failed=True)
    if action not in ("list", "remove") and (warning := await service.jobs.warning()):
        answer["warning"] = warning
    return _output({"success": True, **answer})


async def _act(
    jobs: CronService, actor: Actor, action: str, job_id: str, fields: JsonObject
) -> JsonObject:
    disabled = bool(fields.pop("include_disabled", False))
    reason = str(fields.pop("reason", ""))
    given = {name: value for name, value in fields.items() if value not in ("", None)}
    if action == "list":
        found = [_line(job) for job in await jobs.all(actor, disabled=disabled)]
        return {"count": len(found), "jobs": found}
    if action == "create":
        job = await jobs.add(given, actor)
        shown = {name: job.get(name) for name in ("name", "repeat", "deliver", "next_run_at")}
        return {
            "job_id": job["id"],
            **shown,
            "schedule": job["schedule_display"],
            "timezone": zone_name(jobs.zone),
            "job": _view(job),
            "message": jobs.describe(job),
        }
    known = await jobs.find(job_id, actor)
    if action == "update":
        return {"job": _view(await jobs.change(known["id"], given, actor))}
    if action == "pause":
        return {"job": _view(await jobs.pause(known["id"], actor, reason=reason))}
    return {"job": _view(await getattr(jobs, _ACTIONS[action])(known["id"], actor))}


def _flat(options: JsonObject) -> JsonObject:
    """The options; a model may be given as {provider, model}."""
    model = options.get("model")
    return {**options, **model} if isinstance(model, dict) else options


def _line(job: JsonObject) -> JsonObject:
    return {
        "job_id": job.get("id"),
        **{name: job.get(name) for name in _LISTED},
        "prompt_preview": str(job.get("prompt") or "")[:PREVIEW_CHARS],
        "schedule": job.get("schedule_display"),
    }


def _view(job: JsonObject) -> JsonObject:
    return {name: value for name, value in job.items() if name not in _INTERNAL}


def _output(answer: JsonObject, *, failed: bool = False) -> ToolOutput:
    return ToolOutput.text(encode(answer).decode(), failed=failed)
