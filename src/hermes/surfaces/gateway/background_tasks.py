"""Background tasks of a chat: sessions of their own whose answers come later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hermes.app.app import App
from hermes.app.side_questions import in_background, mark_reported
from hermes.commands.formatting import explain_ending, one_line
from hermes.core.errors import HermesError
from hermes.core.session import Session

PREVIEW_CHARS = 60
BACKGROUND = "background"

Report = Callable[[str], Awaitable[None]]


class BackgroundTask(NamedTuple):
    id: str
    title: str
    task: asyncio.Task[None]


class BackgroundTasks:
    """The tasks of one chat. They end with the process; the next one continues them."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: dict[str, BackgroundTask] = {}
        self._is_closing = False

    @property
    def running(self) -> tuple[BackgroundTask, ...]:
        return tuple(self._tasks.values())

    def start(self, session: Session, text: str, report: Report, task_id: str) -> str:
        """Start or continue a task; returns what the person is told now."""
        title = one_line(text, PREVIEW_CHARS)
        task = asyncio.ensure_future(self._work(task_id, session, text, report))
        self._tasks[task_id] = BackgroundTask(task_id, title, task)
        return f"{task_id} works on “{title}”. /stop {task_id} stops it."

    async def stop(self, task_id: str) -> str:
        found = self._tasks.get(task_id)
        if found is None:
            return f"There is no background task {task_id}; see /agents."
        self._app.shared.stopped_tasks.add(task_id)
        found.task.cancel()
        return f"{task_id} is stopped."

    async def close(self) -> None:
        self._is_closing = True
        tasks = [each.task for each in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, task_id: str, session: Session, text: str, report: Report) -> None:
        title = one_line(text, PREVIEW_CHARS)
        try:
            answer = await self._answer(session, text, task_id)
            await report(f"**{task_id}: {title}**\n{answer}")
            await mark_reported(self._app, task_id)
        finally:
            # Only now: `close` waits for the report too.
            self._tasks.pop(task_id, None)

    async def _answer(self, session: Session, text: str, task_id: str) -> str:
        try:
            done = await in_background(self._app, session, text, task_id)
        except HermesError as error:
            return f"It failed: {error}"
        except asyncio.CancelledError:
            if self._is_closing:
                raise
            return "It was stopped."
        body = done.answer.strip()
        ending = explain_ending(done.ended, answered=bool(body)) if done.ended else ""
        return "\n\n".join(filter(None, (body, ending)))
