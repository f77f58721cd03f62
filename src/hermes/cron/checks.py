"""Checks the jobs of a home for `hermes cron doctor` and `hermes doctor`. Changes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.cron.delivery import LOCAL, ORIGIN, parse_targets
from hermes.cron.due import due_time
from hermes.cron.record import find_script, schedule_of
from hermes.cron.service import CronService

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

# A run that is later than this should have started.
LATE_SECONDS = 180.0


async def job_problems(run: RunContext, jobs: CronService) -> list[str]:
    """What keeps jobs from running or being delivered, one sentence each."""
    state, stored = await jobs.state(), await jobs.all()
    found = list(state.problems)
    if state.jobs and not state.running:
        found.append(state.note)
    skills = await asyncio.to_thread(_known_skills, run)
    for job in stored:
        now = run.world.clock.now()
        found += [f"{job.get('name')} ({job.get('id')}): {text}" for text in _of(job, jobs, now)]
        found += [
            f"{job.get('name')} ({job.get('id')}): there is no skill {name!r}"
            for name in job.get("skills") or ()
            if name not in skills
        ]
    found += [
        f"The outcome of a run of {each.job} is unknown: {each.error}" for each in state.unknown
    ]
    found += [
        f"Output of {each.job} was not delivered: {each.delivery}" for each in state.undelivered
    ]
    found += [
        f"Output of {each.job} waits for a gateway to reach {each.target}."
        for each in state.waiting
    ]
    return found


def _of(job: JsonObject, jobs: CronService, now: float) -> list[str]:
    found: list[str] = []
    due_at = due_time(job)
    if due_at is not None and now - due_at > LATE_SECONDS:
        found.append(f"it was due at {job['next_run_at']} and has not started")
    try:
        schedule_of(job)
        parse_targets(str(job.get("deliver") or LOCAL))
        if job.get("script"):
            find_script(jobs.store.scripts, str(job["script"]))
    except HermesError as error:
        found.append(str(error))
    if (folder := str(job.get("workdir") or "")) and not Path(folder).is_dir():
        found.append(f"its working folder {folder} does not exist")
    if job.get("deliver") == ORIGIN and not job.get("origin"):
        found.append(f"its output goes to {ORIGIN}, but it was not created in a chat")
    if job.get("last_status") in ("error", "delivery_failed", "blocked"):
        why = job.get("last_error") or job.get("last_delivery_error") or job["last_status"]
        found.append(f"its last run failed: {why}")
    return found


def _known_skills(run: RunContext) -> frozenset[str]:
    """The names of the skill folders; a nested folder is a category."""
    root = run.home.root / "skills"
    files = root.glob("**/SKILL.md") if root.is_dir() else ()
    return frozenset(path.parent.name for path in files)
