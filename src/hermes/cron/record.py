"""The record of a job: its fields, their checks, and who may see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Principal
from hermes.core.errors import NotFound, UsageError
from hermes.cron.delivery import LOCAL, ORIGIN, JobOrigin, parse_targets
from hermes.cron.safety import check_prompt
from hermes.cron.schedule import Schedule, format_time, next_run
from hermes.tools.toolbox import resolve_toolsets

JOB_ID = r"[a-f0-9]{12}"
LEAST_PREFIX = 4
NAME_CHARS = 50

T = TypeVar("T")
JobStatus = Literal["ok", "error", "delivery_failed", "blocked"]
Short = Annotated[str, Meta(max_length=200)]
PathText = Annotated[str, Meta(max_length=4_000)]
PromptText = Annotated[str, Meta(max_length=5_000)]
ScheduleText = Annotated[str, Meta(min_length=1, max_length=200)]
Names = Annotated[tuple[Short, ...], Meta(max_length=50)]
# Fields that a surface may set and that are stored as they are.
PLAIN = (
    "name", "prompt", "skills", "model", "provider", "base_url", "script", "no_agent", "workdir",
    "context_from", "continuity", "enabled_toolsets", "attach_to_session", "no_plan",
)  # fmt: skip
# Fields that reach the machine beyond a conversation.
OWNER_ONLY = ("script", "no_agent", "workdir", "base_url")


class Actor(Value):
    """Who asks for something about jobs. `by` names the surface; `origin` is their chat."""

    by: str
    principal: Principal = "owner"
    person: str = ""
    is_admin: bool = False
    origin: JobOrigin | None = None

    @property
    def sees_all(self) -> bool:
        return self.is_admin or self.principal in ("owner", "system")

    def may_see(self, job: JsonObject) -> bool:
        """Members see the jobs that they created, or that someone created in their chat."""
        if self.sees_all:
            return True
        return bool(self.person) and self.person in (job.get("person"), job.get("created_by"))


class NewJob(Value, forbid_unknown_fields=True):
    schedule: ScheduleText
    prompt: PromptText = ""
    name: Short = ""
    deliver: Short | Names = ""
    skills: Names = ()
    repeat: int | None = None
    model: Short = ""
    provider: Short = ""
    base_url: Short = ""
    script: PathText = ""
    no_agent: bool = False
    workdir: PathText = ""
    context_from: Names = ()
    continuity: bool = False
    enabled_toolsets: Names = ()
    attach_to_session: bool = False
    no_plan: bool = False
    paused: bool = False


class JobChange(Value, forbid_unknown_fields=True):
    """Fields that are None stay unchanged; an empty value clears a field."""

    schedule: ScheduleText | None = None
    prompt: PromptText | None = None
    name: Short | None = None
    deliver: Short | Names | None = None
    skills: Names | None = None
    repeat: int | None = None
    enabled: bool | None = None
    model: Short | None = None
    provider: Short | None = None
    base_url: Short | None = None
    script: PathText | None = None
    no_agent: bool | None = None
    workdir: PathText | None = None
    context_from: Names | None = None
    continuity: bool | None = None
    enabled_toolsets: Names | None = None
    attach_to_session: bool | None = None
    no_plan: bool | None = None


def convert_fields(kind: type[T], fields: JsonObject) -> T:
    try:
        return convert(kind, fields)
    except DecodeError as error:
        raise UsageError(f"Invalid job: {error}.") from error


def new_record(
    new: NewJob, schedule: Schedule, actor: Actor, job_id: str, now: float
) -> JsonObject:
    """The fields of a new job except those that `schedule_fields` computes."""
    origin = actor.origin
    times = new.repeat if new.repeat and new.repeat > 0 else None
    job: JsonObject = {name: _plain(getattr(new, name)) for name in PLAIN}
    subject = new.prompt or ", ".join(new.skills) or Path(new.script).name
    return job | {
        "id": job_id,
        "name": new.name or " ".join(subject.split())[:NAME_CHARS],
        "deliver": join_targets(new.deliver) or (ORIGIN if origin else LOCAL),
        "origin": _plain_origin(origin),
        "repeat": {
            "times": 1 if times is None and schedule.kind == "once" else times,
            "completed": 0,
        },
        "created_at": format_time(now),
        "created_by": actor.by,
        "principal": actor.principal,
        "person": actor.person,
        "last_run_at": None,
        "last_status": None,
        "last_error": None,
        "last_delivery_error": None,
        "failure_streak": 0,
        **state_fields(enabled=not new.paused),
    }


def change_record(change: JobChange) -> JsonObject:
    """The fields that a change sets directly."""
    changes = {
        name: _plain(value) for name in PLAIN if (value := getattr(change, name)) is not None
    }
    if change.deliver is not None:
        changes["deliver"] = join_targets(change.deliver) or LOCAL
    return changes


def schedule_fields(schedule: Schedule, now: float, zone: str) -> JsonObject:
    moment = next_run(schedule, now, zone=zone)
    return {
        "schedule": schedule.fields(),
        "schedule_display": schedule.display,
        "next_run_at": format_time(moment, zone) if moment is not None else None,
        "timezone": zone,
        "retry": None,
    }


def schedule_of(job: JsonObject) -> Schedule:
    stored: dict[str, Any] = job.get("schedule") or {}
    try:
        return convert(Schedule, {**stored, "display": str(job.get("schedule_display") or "")})
    except DecodeError as error:
        raise UsageError(f"The schedule of job {job.get('id')} cannot be read: {error}.") from error


def state_fields(*, enabled: bool, now: str = "", reason: str = "") -> JsonObject:
    return {
        "enabled": enabled,
        "state": "scheduled" if enabled else "paused",
        "paused_at": None if enabled else now or None,
        "paused_reason": reason or None,
    }


def origin_of(job: JsonObject) -> JobOrigin | None:
    try:
        return convert(JobOrigin, job["origin"]) if job.get("origin") else None
    except DecodeError:
        return None


def check_job(job: JsonObject, scripts: Path, jobs: list[JsonObject]) -> None:
    """Check a job that is about to be stored. Raise UsageError."""
    prompt = str(job.get("prompt") or "")
    check_prompt(prompt)
    if not (prompt or job.get("skills") or job.get("script")):
        raise UsageError("A job needs a prompt, a skill or a script.")
    if job.get("no_agent") and not job.get("script"):
        raise UsageError("A job without an agent needs a script.")
    if script := str(job.get("script") or ""):
        find_script(scripts, script)
    workdir = str(job.get("workdir") or "")
    if workdir and not (Path(workdir).is_absolute() and Path(workdir).is_dir()):
        raise UsageError(f"The working folder {workdir!r} must be an existing absolute path.")
    if toolsets := job.get("enabled_toolsets"):
        resolve_toolsets(toolsets)
    known = {each.get("id") for each in jobs}
    for wanted in job.get("context_from") or ():
        if wanted not in known:
            raise UsageError(f"There is no job {wanted!r} to take context from.")
    if job.get("principal") in ("owner", "system"):
        return
    for name in OWNER_ONLY:
        if job.get(name):
            raise UsageError(f"Only the owner may set `{name}` of a job.")


def find_script(scripts: Path, name: str) -> Path:
    """The file of a script. Raise UsageError if it is not a file inside of the folder."""
    folder = scripts.resolve()
    found = (folder / name).resolve()
    if not found.is_relative_to(folder) or not found.is_file():
        raise UsageError(f"There is no script {name!r} in {scripts}.")
    return found


def find_job(jobs: list[JsonObject], job_id: str) -> JsonObject:
    for job in jobs if re.fullmatch(JOB_ID, job_id) else ():
        if job.get("id") == job_id:
            return job
    raise NotFound("There is no such job.")


def match_jobs(jobs: list[JsonObject], reference: str) -> list[JsonObject]:
    """The jobs that a person means: an id, a unique prefix of one, or a name in any case."""
    if exact := [job for job in jobs if job.get("id") == reference]:
        return exact
    prefix = reference if re.fullmatch(r"[a-f0-9]{4,12}", reference) else None
    by_prefix = [job for job in jobs if prefix and str(job.get("id")).startswith(prefix)]
    wanted = reference.casefold()
    by_name = [job for job in jobs if str(job.get("name")).casefold() == wanted]
    return by_name or by_prefix


def join_targets(deliver: str | tuple[str, ...]) -> str:
    text = deliver if isinstance(deliver, str) else ",".join(deliver)
    return ",".join(parse_targets(text))


def _plain(value: object) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _plain_origin(origin: JobOrigin | None) -> JsonObject | None:
    if origin is None:
        return None
    return {name: getattr(origin, name) for name in origin.__struct_fields__}
