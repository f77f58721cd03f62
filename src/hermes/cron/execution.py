"""Executes one due time of a job: script, prompt and session, also after its process has died."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from hermes.codec.values import JsonObject, Value, replace
from hermes.config.child_environment import child_environment
from hermes.config.cron_settings import CronSettings
from hermes.core.effects import Principal
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.cron.due import requests_of
from hermes.cron.output import OutputFiles, RunOutput, is_silent, stamp
from hermes.cron.prompt import INTERRUPTED, PromptParts, build_prompt, origin
from hermes.cron.record import find_script
from hermes.cron.scripts import ScriptResult, run_script, wants_agent
from hermes.cron.store import JobStore

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext


class JobTurn(Value):
    """The turn of a run. An empty text continues a turn whose message is in the journal."""

    session_id: str
    text: str
    origin: str
    # What `budget.job` counts under.
    job: str
    cwd: str
    toolsets: tuple[str, ...]
    model: str
    provider: str
    principal: Principal
    person: str


class JobAnswer(Value):
    """How the turn of a run ended."""

    status: Literal["ok", "failed", "interrupted"]
    text: str = ""
    error: str = ""
    model: str = ""
    # No model could be reached; a later attempt may succeed.
    is_unreachable: bool = False


class JobSessions(Protocol):
    """Runs jobs as sessions; `hosting` provides it."""

    async def run(self, turn: JobTurn, *, inactivity_seconds: float) -> JobAnswer:
        """Start or continue the session. The same session never runs its message twice."""
        ...

    async def interrupt(self) -> None:
        """Stop all active runs; each ends as interrupted."""
        ...

    async def is_started(self, session_id: str) -> bool:
        """Whether the message of the run is in the journal."""
        ...

    async def load_skill(self, name: str, cwd: str) -> str:
        """Raise NotFound or UsageError for a skill that cannot be used."""
        ...

    async def before_run(self, facts: JsonObject) -> str:
        """Tell hooks that a job is about to run. Return why it must not, or ""."""
        ...

    async def after_run(self, facts: JsonObject) -> None:
        """Tell hooks that a job has run."""
        ...


def session_id(job_id: str, due_at: float) -> str:
    """The same in every process, so that another one can continue the run."""
    return f"cron_{job_id}_{stamp(due_at)}"


def budget_key(job_id: str, due_at: float) -> str:
    """What a job may spend is counted by calendar month, so that no job is blocked for ever."""
    return f"cron:{job_id}:{stamp(due_at)[:6]}"


class JobExecutor:
    """Executes runs. The caller has claimed them and records their end."""

    def __init__(self, run: RunContext, store: JobStore, sessions: JobSessions) -> None:
        self._run = run
        self._store = store
        self._sessions = sessions

    async def execute(
        self, job: JsonObject, due_at: float, settings: CronSettings, *, was_running: bool
    ) -> RunOutput:
        """`was_running`: a process that died had begun it."""
        started = self._run.world.clock.monotonic()
        facts: JsonObject = {"job": job, "name": job.get("name"), "due_at": due_at}
        if not was_running and (reason := await self._sessions.before_run(facts)):
            return RunOutput(status="blocked", error=f"A hook stopped the run: {reason}")
        try:
            if job.get("no_agent"):
                output = await self._run_script_only(job, settings)
            else:
                output = await self._run_agent(job, due_at, settings, was_running)
        except HermesError as error:
            output = RunOutput(status="error", error=str(error))
        seconds = self._run.world.clock.monotonic() - started
        output = self._redact(output, seconds)
        facts |= {"status": output.status, "output": output.text, "error": output.error}
        await self._sessions.after_run(facts)
        return output

    async def _run_script_only(self, job: JsonObject, settings: CronSettings) -> RunOutput:
        done = await self._script(job, settings)
        text = done.output.strip()
        if done.error:
            return RunOutput(status="error", text=text, error=done.error)
        return RunOutput(status="ok" if text else "silent", text=text)

    async def _run_agent(
        self, job: JsonObject, due_at: float, settings: CronSettings, was_running: bool
    ) -> RunOutput:
        id = session_id(str(job["id"]), due_at)
        text, source = "", "user"
        if not (was_running and await self._sessions.is_started(id)):
            parts = await self._parts(job, due_at, settings, was_running)
            if parts.script is not None and not wants_agent(parts.script.output):
                return RunOutput(status="silent", text="The script said no.")
            text, source = build_prompt(job, parts), origin(job, parts)
        turn = JobTurn(
            session_id=id,
            text=text,
            origin=source,
            job=budget_key(str(job["id"]), due_at),
            cwd=_workdir(job),
            toolsets=tuple(job.get("enabled_toolsets") or ()),
            model=str(job.get("model") or settings.model),
            provider=str(job.get("provider") if job.get("model") else settings.model_provider),
            principal=job.get("principal") or "owner",
            person=str(job.get("person") or ""),
        )
        answer = await self._sessions.run(turn, inactivity_seconds=settings.inactivity_seconds)
        return RunOutput(
            status="error"
            if answer.status != "ok"
            else "silent"
            if is_silent(answer.text)
            else "ok",
            text=answer.text,
            error=answer.error,
            prompt=text or str(job.get("prompt") or ""),
            model=answer.model,
            session_id=id,
            is_unreachable=answer.is_unreachable,
            is_interrupted=answer.status == "interrupted",
        )

    async def _parts(
        self, job: JsonObject, due_at: float, settings: CronSettings, was_running: bool
    ) -> PromptParts:
        skills: list[str] = []
        for name in job.get("skills") or ():
            try:
                skills.append(await self._sessions.load_skill(name, _workdir(job)))
            except (NotFound, UsageError):
                skills.append(f"[The skill {name} cannot be loaded.]")
        script = None
        if job.get("script"):
            # A script that had begun may have done its work, so it does not run again.
            interrupted = ScriptResult(output="", error=INTERRUPTED)
            script = interrupted if was_running else await self._script(job, settings)
        return PromptParts(
            skills=tuple(skills),
            context=await asyncio.to_thread(self._context, job, settings),
            script=script,
            requests=tuple((each.source, each.text) for each in requests_of(job, due_at)),
        )

    def _context(self, job: JsonObject, settings: CronSettings) -> tuple[tuple[str, str], ...]:
        files = OutputFiles(self._store.folder / "output", keep=settings.output_retention)
        names = {str(each.get("id")): str(each.get("name")) for each in self._store.all()}
        ids = job.get("context_from") or ()
        wanted = [(id, f"{names.get(id, 'a removed job')} ({id})") for id in ids]
        if job.get("continuity"):
            wanted.append((str(job["id"]), "the previous run of this job"))
        found = [(title, files.newest_response(id)) for id, title in wanted]
        return tuple((title, text) for title, text in found if text)

    async def _script(self, job: JsonObject, settings: CronSettings) -> ScriptResult:
        script = find_script(self._store.scripts, str(job["script"]))
        passthrough = self._run.settings.terminal.env_passthrough
        done = await run_script(
            script,
            cwd=_workdir(job) or str(script.parent),
            env=child_environment(self._run.env, passthrough),
            timeout_seconds=settings.script_timeout_seconds,
        )
        redact = self._run.redactor.text
        return ScriptResult(output=redact(done.output), error=redact(done.error))

    def _redact(self, output: RunOutput, seconds: float) -> RunOutput:
        texts = {name: getattr(output, name) for name in ("text", "error", "prompt")}
        redacted = {name: self._run.redactor.text(text) for name, text in texts.items()}
        return replace(output, seconds=seconds, **redacted)


def _workdir(job: JsonObject) -> str:
    folder = str(job.get("workdir") or "")
    if folder and not Path(folder).is_dir():
        raise UsageError(f"The working folder {folder} no longer exists; change the job.")
    return folder
