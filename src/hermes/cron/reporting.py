"""Reports the end of a run: output file, delivery, the record of the job, and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.codec.values import JsonObject, Value
from hermes.config.cron_settings import CronSettings
from hermes.core.errors import HermesError
from hermes.cron.delivery import (
    LOCAL,
    DeliveryReport,
    OutputDelivery,
    WaitingOutput,
    WaitingOutputs,
    parse_targets,
)
from hermes.cron.due import retry_delay, retry_later
from hermes.cron.output import OutputFiles, RunOutput, failure_message, success_message
from hermes.cron.record import JobStatus, origin_of
from hermes.cron.schedule import format_time
from hermes.cron.store import JobStore
from hermes.journal.due_times import DueState

# How long after a shutdown an interrupted one-shot run is tried again.
SHUTDOWN_RETRY_SECONDS = 60.0


class FinishedRun(Value):
    """What the row of a run gets."""

    state: DueState
    error: str = ""
    delivery: str = ""


class RunReporter:
    """Reports finished runs. Reporting the same run twice, after a crash, changes nothing."""

    def __init__(self, store: JobStore, outbox: WaitingOutputs, delivery: OutputDelivery) -> None:
        self._store = store
        self._outbox = outbox
        self._delivery = delivery

    async def report(
        self, job: JsonObject, due_at: float, output: RunOutput, settings: CronSettings, zone: str
    ) -> FinishedRun:
        now = self._store.now()
        is_error = output.status in ("error", "blocked", "unknown")
        retry = self._retry_seconds(job, output, settings)
        files = OutputFiles(self._store.folder / "output", keep=settings.output_retention)
        await asyncio.to_thread(files.save, job, due_at, output, zone)
        streak = int(job.get("failure_streak") or 0) + 1 if is_error else 0
        text = self._message({**job, "failure_streak": streak}, output, settings, retry, is_error)
        delivery = await self._deliver(job, due_at, text, settings) if text else output.status
        failed = delivery.partition(": ")[2] if delivery.startswith("failed") else ""
        status: JobStatus = "delivery_failed" if failed else "error" if is_error else "ok"
        facts: JsonObject = {
            "last_status": "blocked" if output.status == "blocked" else status,
            "last_error": output.error or None,
            "last_delivery_error": failed or None,
            "failure_streak": streak,
            "last_due_at": format_time(due_at, zone),
        }
        await asyncio.to_thread(self._finish, str(job["id"]), facts, retry, now, zone)
        state: DueState = "failed" if is_error else "completed"
        if output.status == "unknown":
            state = "unknown"
        return FinishedRun(state=state, error=output.error, delivery=delivery)

    async def send_waiting(self) -> None:
        """Send what earlier runs could not deliver."""
        for waiting in await asyncio.to_thread(self._outbox.all):
            report = await self._attempt(waiting)
            if report.state != "unavailable":
                self._outbox.remove(waiting)

    async def notify(self, job: JsonObject, due_at: float, text: str) -> str:
        """Tell the targets of a job something else than the output of a run."""
        return await self._deliver(job, due_at, text, CronSettings(), key="notice")

    def _retry_seconds(self, job: JsonObject, output: RunOutput, settings: CronSettings) -> float:
        """Seconds until another attempt; 0 without one."""
        if output.is_interrupted:
            is_once = (job.get("schedule") or {}).get("kind") == "once"
            return SHUTDOWN_RETRY_SECONDS if is_once and not job.get("attempt") else 0.0
        if output.is_unreachable and settings.retry_unreachable:
            return retry_delay(job) or 0.0
        return 0.0

    def _message(
        self,
        job: JsonObject,
        output: RunOutput,
        settings: CronSettings,
        retry_seconds: float,
        is_error: bool,
    ) -> str:
        """What the targets get; "" for silence. Failures are never silent."""
        if is_error:
            return failure_message(
                job,
                output.error or output.text,
                nudge=settings.failure_nudge_threshold,
                retry_minutes=retry_seconds / 60,
            )
        if output.status == "silent":
            return ""
        mirrored = settings.mirror_delivery or bool(job.get("attach_to_session"))
        return success_message(job, output.text, wrap=settings.wrap_response, is_mirrored=mirrored)

    async def _deliver(
        self, job: JsonObject, due_at: float, text: str, settings: CronSettings, key: str = "cron"
    ) -> str:
        """What became of the text, for the row of the run."""
        mirror = settings.mirror_delivery or bool(job.get("attach_to_session"))
        done: list[str] = []
        for target in parse_targets(str(job.get("deliver") or LOCAL)):
            waiting = WaitingOutput(
                job=str(job["id"]),
                due_at=due_at,
                target=target,
                text=text,
                key=f"{key}:{job['id']}:{due_at:.0f}",
                origin=origin_of(job),
                mirror=mirror,
            )
            done.append("local" if target == LOCAL else await self._send(waiting))
        return _combine(done)

    async def _send(self, waiting: WaitingOutput) -> str:
        report = await self._attempt(waiting)
        if report.state == "unavailable":
            await asyncio.to_thread(self._outbox.add, waiting)
            return f"waiting: {waiting.target}: {report.detail}"
        if report.state == "failed":
            return f"failed: {waiting.target}: {report.detail}"
        return f"delivered: {report.detail or waiting.target}"

    async def _attempt(self, waiting: WaitingOutput) -> DeliveryReport:
        key, origin, mirror = waiting.key, waiting.origin, waiting.mirror
        try:
            return await self._delivery.deliver(
                waiting.target, waiting.text, key=key, origin=origin, mirror=mirror
            )
        except HermesError as error:
            return DeliveryReport(state="failed", detail=str(error))

    def _finish(
        self, job_id: str, facts: JsonObject, retry_seconds: float, now: float, zone: str
    ) -> None:
        with self._store.edit(wake=bool(retry_seconds)) as jobs:
            for job in jobs:
                # A run that is reported again after a crash must not count twice.
                if job.get("id") == job_id and job.get("last_due_at") != facts["last_due_at"]:
                    job.update(facts)
                    if retry_seconds:
                        retry_later(job, retry_seconds, now, zone)


def _combine(done: Sequence[str]) -> str:
    """Problems first: they are what a person must see."""
    for state in ("failed", "waiting", "delivered"):
        if found := [each.partition(": ")[2] for each in done if each.startswith(state)]:
            return f"{state}: {'; '.join(found)}"
    return "local"
