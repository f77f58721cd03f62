"""Decides what happens to a job at a time, and moves its record to the next run."""

from __future__ import annotations

from typing import Literal

from hermes.codec.json import convert, plain
from hermes.codec.values import JsonObject, Value
from hermes.config.cron_settings import CronSettings
from hermes.core.errors import UsageError
from hermes.cron.record import schedule_of
from hermes.cron.schedule import Schedule, format_time, next_run, parse_time, period_seconds

LEAST_GRACE, MOST_GRACE = 120.0, 7_200.0
RETRY_MINUTES = (5, 15, 30)
# Requests are kept for so long that one that comes again is recognized.
MAX_REQUESTS = 50
OVERLAP = "overlap: the previous run is still active"
MISSED = "missed"


class Plan(Value):
    """What to do with a job that is due. `hold`: nothing yet, a run of it is active."""

    action: Literal["run", "skip", "give_up", "hold"]
    due_at: float
    reason: str = ""


def due_time(job: JsonObject) -> float | None:
    """When the job runs next; None if it does not."""
    is_active = job.get("enabled") and job.get("state") == "scheduled"
    moment = job.get("next_run_at")
    if not isinstance(moment, str) or not (is_active or job.get("run_requested_at")):
        return None
    try:
        return parse_time(moment)
    except ValueError:
        return None


def plan_job(
    job: JsonObject,
    due_at: float,
    *,
    seen_at: float,
    is_running: bool,
    settings: CronSettings,
    zone: str,
) -> Plan:
    """Decide about a job that is due. `seen_at` is when a scheduler first saw it due: a job that
    waits for capacity is not late."""
    schedule, late = schedule_of(job), seen_at - due_at
    is_extra = bool(job.get("run_requested_at") or job.get("retry"))
    if is_running:
        waits = settings.missed == "all" and schedule.kind != "once"
        waits = waits or bool(requests_of(job, 0.0))
        return Plan(action="hold" if waits else "skip", due_at=due_at, reason=OVERLAP)
    if schedule.kind == "once" and not is_extra and late > settings.oneshot_max_lateness:
        return Plan(action="give_up", due_at=due_at, reason=MISSED)
    may_skip = schedule.kind != "once" and not is_extra and settings.missed == "skip"
    if may_skip and late > grace_seconds(schedule, due_at, zone):
        reason = f"{MISSED}: no scheduler was running for {late / 60:.0f} minutes"
        return Plan(action="skip", due_at=due_at, reason=reason)
    return Plan(action="run", due_at=due_at)


def grace_seconds(schedule: Schedule, due_at: float, zone: str) -> float:
    """How late a recurring run may start: half a period, within limits."""
    return min(MOST_GRACE, max(LEAST_GRACE, period_seconds(schedule, due_at, zone) / 2))


class RunRequest(Value):
    """Text of someone else for one run of a job, such as a webhook. `due_at` is set when the run is
    claimed."""

    key: str
    source: str
    text: str
    due_at: float = 0.0


def make_due(job: JsonObject, now: float, zone: str, request: RunRequest | None) -> None:
    """Make a job due now, once for each key of a request."""
    requests = list(job.get("requests") or ())
    if request is not None:
        if any(each["key"] == request.key for each in requests):
            return
        # A due time is one run, so a request that comes during a run gets a later one.
        now = max(now, *(each.get("due_at", 0.0) + 1.0 for each in requests), 0.0)
        requests.append(plain(request))
    moment = format_time(now, zone)
    then = job.get("then_run_at") or job.get("next_run_at")
    if job.get("run_requested_at"):
        moment, then = str(job["next_run_at"]), job.get("then_run_at")
    job |= {"next_run_at": moment, "run_requested_at": moment, "then_run_at": then}
    if requests:
        job["requests"] = requests[-MAX_REQUESTS:]


def requests_of(job: JsonObject, due_at: float) -> tuple[RunRequest, ...]:
    """The requests that a run answers."""
    found = (convert(RunRequest, each) for each in job.get("requests") or ())
    return tuple(each for each in found if each.due_at == due_at)


def advance(job: JsonObject, plan: Plan, *, now: float, settings: CronSettings, zone: str) -> None:
    """Move the record past a due time. Does nothing if another process has moved it."""
    if due_time(job) != plan.due_at:
        return
    schedule, retry = schedule_of(job), job.get("retry")
    following = _following(job, schedule, plan.due_at, now, settings, zone)
    repeat = {"times": None, "completed": 0, **(job.get("repeat") or {})}
    if plan.action == "run":
        job["last_run_at"] = format_time(now, zone)
        repeat["completed"] += 0 if retry else 1
    is_complete = repeat["times"] is not None and repeat["completed"] >= repeat["times"]
    for request in job.get("requests") or () if plan.action == "run" else ():
        # The run takes all requests that wait.
        request["due_at"] = request.get("due_at") or plan.due_at
    job |= {
        "repeat": repeat,
        "next_run_at": format_time(following, zone) if following is not None else None,
        "run_requested_at": None,
        "then_run_at": None,
        "retry": None,
        "attempt": retry["attempt"] if retry and plan.action == "run" else 0,
    }
    if plan.action == "give_up":
        job |= {"enabled": False, "state": "error", "last_status": "error", "last_error": MISSED}
    elif (is_complete or following is None) and job.get("state") == "scheduled":
        job |= {"enabled": False, "state": "completed", "next_run_at": None}


def retry_later(job: JsonObject, delay_seconds: float, now: float, zone: str) -> bool:
    """Make the job due again after a run that never reached a model, unless it is due sooner
    anyway. The extra run does not count."""
    attempt = int(job.get("attempt") or 0) + 1
    upcoming, again = due_time(job), now + delay_seconds
    if job.get("state") == "paused" or (upcoming is not None and upcoming <= again):
        return False
    job |= {
        "then_run_at": job.get("next_run_at"),
        "next_run_at": format_time(again, zone),
        "retry": {"attempt": attempt},
        "enabled": True,
        "state": "scheduled",
    }
    return True


def retry_delay(job: JsonObject) -> float | None:
    """How long to wait before the next attempt; None after the last one."""
    attempt = int(job.get("attempt") or 0)
    return 60.0 * RETRY_MINUTES[attempt] if attempt < len(RETRY_MINUTES) else None


def correct(job: JsonObject, now: float, zone: str) -> bool:
    """Recompute the next run after the time zone has changed, or after the clock was set back, when
    the next run is further away than the schedule says. Whether it has changed."""
    due_at = due_time(job)
    if due_at is None or job.get("run_requested_at") or job.get("retry"):
        return False
    try:
        schedule = schedule_of(job)
    except UsageError:
        return False
    is_moved = schedule.is_local and job.get("timezone", zone) != zone
    if schedule.kind == "once" and not is_moved:
        return False
    if not is_moved and due_at <= now:
        return False
    # A run that is already due stays due.
    base = min(now, due_at - 1) if due_at <= now else now
    following = next_run(schedule, base, zone=zone)
    if following is None or (not is_moved and following >= due_at):
        return False
    note = f"moved to the time zone {zone or 'of this machine'}" if is_moved else "clock set back"
    job |= {"next_run_at": format_time(following, zone), "timezone": zone, "note": note}
    return True


def _following(
    job: JsonObject,
    schedule: Schedule,
    due_at: float,
    now: float,
    settings: CronSettings,
    zone: str,
) -> float | None:
    if (then := job.get("then_run_at")) and parse_time(then) > now:
        return parse_time(then)
    after = due_at if settings.missed == "all" else max(now, due_at)
    return next_run(schedule, after, last=due_at, zone=zone)
