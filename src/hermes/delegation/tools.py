"""The tool that delegates tasks to child sessions, and waits for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.config.delegation_settings import DelegationSettings
from hermes.core.errors import HermesError, ToolError
from hermes.core.messages import AssistantMessage, Image
from hermes.core.session import Session
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool
from hermes.delegation.background import BackgroundChildren
from hermes.delegation.child_run import ChildRun, ChildTask, task_name
from hermes.delegation.identity import BACKGROUND, SUBAGENT, Delegation
from hermes.delegation.monitor import ProgressTree
from hermes.delegation.outcome import ChildOutcome, TaskResult, find_conflicts, task_result
from hermes.delegation.prompt import task_message
from hermes.delegation.summaries import fit_summary, summary_limit
from hermes.delegation.tasks import Task, check_tasks, parse_tasks
from hermes.policy.sources import foreign_origins
from hermes.tools.files.access import image_type

# After a stop, the call returns before the turn gives it up.
STOP_SECONDS = 0.5


class DelegationService:
    """Delegates tasks of one session."""

    def __init__(self, background: BackgroundChildren, session_id: str) -> None:
        self._background = background
        self._delegations = background.delegations
        self._host = background.delegations.host
        self._session_id = session_id

    @property
    def owner(self) -> Session:
        session = self._host.find_session(self._session_id)
        assert session is not None, "a tool runs in an open session"
        return session

    @property
    def depth(self) -> int:
        return self._delegations.depth_of(self._session_id)

    @property
    def settings(self) -> DelegationSettings:
        return self._host.context.settings.delegation

    async def delegate(
        self, ctx: ToolContext, tasks: Sequence[Task], max_steps: int, notes: Sequence[str]
    ) -> ToolOutput:
        """Run the tasks at the same time and return their results in order."""
        clock = self._host.context.world.clock
        begun = clock.monotonic()
        self._delegations.check_capacity(len(tasks))
        delegation = self._identity(ctx.call_id)
        children = [
            await self._child_task(ctx, delegation, index, task, max_steps, SUBAGENT)
            for index, task in enumerate(tasks)
        ]
        tree = ProgressTree(ctx.progress, len(children))
        started = [
            self._delegations.start(
                self.owner,
                child,
                on_line=lambda line, index=index: tree.update(index, line),  # type: ignore[misc]
                log_file=self._delegations.log_file(delegation.id, index),
            )
            for index, child in enumerate(children)
        ]
        runs, works = [run for run, _ in started], [work for _, work in started]
        for index, work in enumerate(works):
            work.add_done_callback(lambda _, index=index: tree.update(index, "finished"))  # type: ignore[misc]
        await self._wait(ctx, runs, works)
        outcomes, errors = await _collect(runs, works)
        results = await self._results(runs, outcomes, errors)
        return _output(delegation, results, notes, clock.monotonic() - begun, outcomes)

    async def delegate_in_background(
        self, ctx: ToolContext, tasks: Sequence[Task], max_steps: int, notes: Sequence[str]
    ) -> ToolOutput:
        """Start the tasks and return once each is durable; results arrive as messages."""
        delegation = self._identity(ctx.call_id)
        logs = []
        for index, task in enumerate(tasks):
            child = await self._child_task(ctx, delegation, index, task, max_steps, BACKGROUND)
            log_file = self._delegations.log_file(delegation.id, index)
            await self._background.start(self.owner, child, log_file)
            logs.append(str(log_file))
        ids = [delegation.child(index) for index in range(len(tasks))]
        answer: JsonObject = {
            "delegation_id": delegation.id,
            "status": "dispatched",
            "children": ids,
            "live_logs": logs,
            "hint": "Each result arrives as a message. Go on with other work, or end the turn.",
        }
        if notes:
            answer["notes"] = [*notes]
        return ToolOutput.text(encode(answer).decode(), details={"children": ids})

    def _identity(self, call_id: str) -> Delegation:
        transcript = self.owner.transcript
        replies = (each for each in reversed(transcript.messages))
        reply = next((each for each in replies if isinstance(each, AssistantMessage)), None)
        reply_n = transcript.number_of(reply) if reply else 0
        return Delegation(self._session_id, reply_n, call_id)

    async def _child_task(
        self,
        ctx: ToolContext,
        delegation: Delegation,
        index: int,
        task: Task,
        max_steps: int,
        source: str,
    ) -> ChildTask:
        return ChildTask(
            id=delegation.child(index),
            text=task_message(task),
            options=await self._delegations.options(self.owner, task, max_steps),
            source=source,
            images=tuple([await self._image(ctx, path) for path in task.images]),
            schema=task.output_schema,
            attended=self.owner.attended and source == SUBAGENT,
            call_id=ctx.call_id,
            name=task_name(index, task.goal),
            depth=self.depth + 1,
        )

    async def _image(self, ctx: ToolContext, path: str) -> Image:
        """Read an image through the gate of the call, and keep a copy for the child session."""
        data = await ctx.workspace.read_bytes(ctx.workspace.resolve(path))
        media_type = image_type(data)
        if not media_type:
            raise ToolError(f"{path} is not an image; nothing was started.")
        home = self._host.context.home
        folder = home.ensure_folder(home.cache / "images")
        ending = media_type.removeprefix("image/").replace("jpeg", "jpg")
        copy = folder / f"{sha256(data).hexdigest()}.{ending}"
        if not copy.exists():
            await asyncio.to_thread(replace_file, copy, data)
        return Image(file=str(copy), media_type=media_type)

    async def _wait(
        self,
        ctx: ToolContext,
        runs: Sequence[ChildRun],
        works: Sequence[asyncio.Task[ChildOutcome]],
    ) -> None:
        """Wait for all child sessions. If the turn is stopped, stop them and return soon; if it is
        suspended, suspend them."""
        stopping = asyncio.ensure_future(ctx.stop.wait())
        everything = asyncio.gather(*works, return_exceptions=True)
        try:
            await asyncio.wait((everything, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                for run in runs:
                    run.stop.set()
                await asyncio.wait(works, timeout=STOP_SECONDS)
        except asyncio.CancelledError:
            if ctx.stop.is_set():
                for run in runs:
                    run.stop.set()
            else:
                await self._delegations.suspend(run.task.id for run in runs)
            raise
        finally:
            stopping.cancel()

    async def _results(
        self,
        runs: Sequence[ChildRun],
        outcomes: Sequence[ChildOutcome],
        errors: Sequence[str],
    ) -> list[TaskResult]:
        owner, settings = self.owner, self._host.context.settings.delegation
        window = self._host.parent_facts(owner).window
        limit = summary_limit(
            settings.max_summary_chars, window, owner.transcript.last_prompt, len(runs)
        )
        conflicts, results = find_conflicts(outcomes), []
        for index, (run, outcome) in enumerate(zip(runs, outcomes, strict=True)):
            name = run.task.id
            summary = await fit_summary(outcome.summary, limit, owner.workspace, name)
            invalid = run.final_errors(outcome)
            result = task_result(index, name, outcome, summary)
            results.append(
                replace(
                    result,
                    status="error" if errors[index] else result.status,
                    error=errors[index] or result.error,
                    conflicts=conflicts[index],
                    schema_valid=None if invalid is None else not invalid,
                    schema_errors=invalid or (),
                )
            )
        return results


async def _collect(
    runs: Sequence[ChildRun], works: Sequence[asyncio.Task[ChildOutcome]]
) -> tuple[list[ChildOutcome], list[str]]:
    """Return the outcome of every child session so far, and its error; a failed one does not affect
    its siblings."""
    outcomes, errors = [], []
    for run, work in zip(runs, works, strict=True):
        error = work.exception() if work.done() and not work.cancelled() else None
        if work.done() and error is None and not work.cancelled():
            outcomes.append(work.result())
        else:
            outcomes.append(await run.stored_outcome())
        if error is not None and not isinstance(error, HermesError):
            error = HermesError(f"The sub-agent ended because of a bug ({error!r}).")
        errors.append(str(error) if error else "")
    return outcomes, errors


def _output(
    delegation: Delegation,
    results: Sequence[TaskResult],
    notes: Sequence[str],
    seconds: float,
    outcomes: Sequence[ChildOutcome],
) -> ToolOutput:
    answer: JsonObject = {
        "results": [_shown(each) for each in results],
        "total_duration_seconds": round(seconds, 3),
    }
    if notes:
        answer["notes"] = [*notes]
    sources = foreign_origins({each for outcome in outcomes for each in outcome.origins})
    text = encode(answer).decode()
    details: JsonObject = {
        "delegation_id": delegation.id,
        "children": [each.child_session_id for each in results],
        "statuses": [each.status for each in results],
    }
    output = ToolOutput.text(text, details=details)
    return replace(output, origin=", ".join(sources) or output.origin)


def _shown(result: TaskResult) -> JsonObject:
    """The result as JSON; the fields that every result has are shown even if they are empty."""
    always = {
        name: plain(getattr(result, name))
        for name in ("task_index", "status", "summary", "api_calls", "duration_seconds", "tokens")
    }
    return {**always, **plain(result), "cost_usd": result.cost_usd}


# Cheaper than a schema of its own, which every request would contain.
_TASKS = "Several in parallel: {goal, context, toolsets, role, output_schema, images}"


@tool(
    repeat="safe",
    timed=True,
    toolset="delegation",
    kind="think",
    display=ToolDisplay(icon="🔀", verb="delegate", detail="{goal}"),
)
async def delegate_task(
    ctx: ToolContext,
    goal: str = "",
    context: str = "",
    tasks: Annotated[list[JsonObject] | None, _TASKS] = None,
    toolsets: list[str] | None = None,
    role: Annotated[str, "leaf or orchestrator"] = "",
    background: Annotated[bool, "Reports come later"] = False,
    max_iterations: int = 0,
) -> ToolOutput:
    """Get reports from sub-agents, which know only what you tell them here."""
    service = ctx.service(DelegationService)
    shared = Task(goal=goal, context=context, toolsets=tuple(toolsets or ()), role=role)
    checked = check_tasks(goal, parse_tasks(tasks or []), shared, service.settings, service.depth)
    most = service.settings.max_iterations
    steps = min(max_iterations, most) if max_iterations > 0 else most
    notes = [*checked.notes]
    if background and service.depth:
        notes.append("A sub-agent cannot delegate in the background; the call waited.")
        background = False
    run = service.delegate_in_background if background else service.delegate
    return await run(ctx, checked.tasks, steps, notes)
