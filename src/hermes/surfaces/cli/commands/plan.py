"""`hermes plan`: write a plan for a request and run it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import click

from hermes.app.app import App
from hermes.codec.json import DecodeError, decode, plain
from hermes.codec.values import JsonObject
from hermes.commands.formatting import sanitize
from hermes.core.commands import Answer, Retitle, Say
from hermes.core.errors import UsageError
from hermes.core.events import (
    ApprovalAsked,
    Record,
    ReplyAdded,
    ToolFinished,
    ToolProgress,
    TurnEnded,
)
from hermes.core.events import QuestionAsked as Question
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.command_context import with_app
from hermes.surfaces.cli.output import Output, json_command

TOOL = "plan"
# An invalid plan is a UsageError, which has exit code 2.
DONE, FAILED = 0, 1


@json_command("Write a plan for a request and run it, or continue one.", with_app)
@click.option("--dry-run", is_flag=True, help="Write and check the plan; run nothing.")
@click.option("--yes", is_flag=True, help="Run it without asking you to confirm the plan.")
@click.option("--file", type=click.Path(path_type=Path), help="Run the plan in this JSON file.")
@click.option("--resume", metavar="ID", default="", help="Continue a plan by its id or session.")
async def plan_command(
    app: App,
    request: str = "",
    *,
    dry_run: bool,
    yes: bool,
    file: Path | None,
    resume: str,
    as_json: bool,
) -> Output:
    arguments = _arguments(request, file, resume, dry_run=dry_run, yes=yes)
    asks = sys.stdin.isatty() and not as_json
    opened = SessionRequest(source="plan", attended=asks, platform="cli", resume=resume)
    session = await app.open(opened)
    call = ToolCall(id=app.context.world.new_id("call"), name=TOOL, arguments=arguments)
    text = request or (f"Run the plan in {file}" if file else f"Continue the plan {resume}")
    reader = PlanReader(session, shows=not as_json, dry_run=dry_run)
    async with aclosing(session.ask(Say(text=text, calls=(call,)))) as records:
        async for record in records:
            if await reader.take(record):
                break
    return reader.output()


def _arguments(
    request: str, file: Path | None, resume: str, *, dry_run: bool, yes: bool
) -> JsonObject:
    if sum(map(bool, (request, file, resume))) != 1:
        raise UsageError("Give a request, --file or --resume, and only one of them.")
    arguments: JsonObject = {"action": "create" if dry_run else "run"}
    if yes:
        arguments["confirm"] = "skip"
    if file is not None:
        try:
            found = decode(dict, file.read_bytes())
        except (OSError, DecodeError) as error:
            raise UsageError(f"{file} is not a plan: {error}") from error
        return {**arguments, "goal": found.get("goal", ""), "steps": found.get("steps", [])}
    return arguments if resume else {**arguments, "goal": request}


class PlanReader:
    """Shows the plan while it runs, answers its questions, and keeps its result."""

    def __init__(self, session: Session, *, shows: bool, dry_run: bool) -> None:
        self._session = session
        self._shows = shows
        self._dry_run = dry_run
        self._result: ToolResult | None = None
        self._answer = ""
        self._error = ""

    async def take(self, record: Record) -> bool:
        """Handle an event; return whether nothing more is wanted."""
        match record.event:
            case ToolProgress(details=details, text=text) if "todos" in details:
                self._show(text)
            case Question() | ApprovalAsked() as asked:
                await self._ask(asked)
            case ToolFinished(result=result) if result.name == TOOL:
                self._result = result
                if plan_id := result.details.get("plan_id"):
                    await self._session.send(Retitle(title=str(plan_id)))
                return self._dry_run or result.failed
            case ReplyAdded(message=message) if message.text:
                self._answer = message.text
            case TurnEnded(error=error):
                self._error = error
            case _:
                pass
        return False

    def _show(self, text: str) -> None:
        if self._shows:
            click.echo(sanitize(text), err=True)

    async def _ask(self, asked: Question | ApprovalAsked) -> None:
        if isinstance(asked, ApprovalAsked):
            question, choices = asked.reason, (*asked.scopes, "deny")
        else:
            question, choices = asked.question, asked.choices
        hint = f" [{'/'.join(choices)}]" if choices else ""
        text = await asyncio.to_thread(_prompt, f"{sanitize(question)}{hint}")
        await self._session.send(Answer(id=asked.id, text=text))

    def output(self) -> Output:
        result = self._result
        if result is None or result.failed:
            error = result.text if result is not None else self._error or "No plan came about."
            raise UsageError(error)
        from hermes.plans.report import PlanReport

        state, session_id = result.details.get("plan"), self._session.id
        report = PlanReport.of(state, session_id=session_id, answer=self._answer)
        done = report.status == "completed" or (self._dry_run and report.status == "draft")
        text = result.text if self._dry_run else self._answer or self._error or result.text
        lines = [sanitize(text)]
        if not done:
            lines.append(f"`hermes plan --resume {report.plan_id}` continues it.")
        return Output(plain(report), lines, code=DONE if done else FAILED)


def _prompt(question: str) -> str:
    return str(click.prompt(question, err=True, default="", show_default=False))
