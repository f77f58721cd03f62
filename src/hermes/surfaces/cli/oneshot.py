"""`hermes -z PROMPT`: one turn, the answer on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.commands.formatting import explain_ending, is_error
from hermes.commands.tool_calls import FailedEdits
from hermes.config.environment import process_environment
from hermes.core.commands import Interrupt, Say
from hermes.core.errors import SessionBusy, UsageError
from hermes.core.events import (
    CallSettled,
    ModelSwitched,
    Record,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.core.messages import ToolCall, Usage
from hermes.core.prompt import Notice
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.skills.library import with_skills
from hermes.surfaces.cli.hook_consent import ask_before_session

VARIABLE = "HERMES_SESSION_SOURCE"


def opening_of(options: Mapping[str, Any], *, attended: bool) -> SessionRequest:
    """The source is given by an option, else by the program that started this one."""
    source = options.get("source") or process_environment().get(VARIABLE, "").strip() or "cli"
    return SessionRequest(
        source=source,
        attended=attended,
        platform="cli",
        resume=options.get("resume") or "",
        newest=options.get("newest"),
        rules=not options.get("ignore_rules"),
        worktree=bool(options.get("worktree")),
        tell_id=bool(options.get("tell_id")),
        stay=bool(options.get("stay")),
    )


def event_line(record: Record) -> JsonObject:
    """The event's own fields and `session_id`, `turn_id`, `at`; `n` for those that are stored."""
    line: JsonObject = plain(record.event)
    line["session_id"], line["at"] = record.session_id, record.at
    if record.turn_id:
        line["turn_id"] = record.turn_id
    if record.n:
        line["n"] = record.n
    return line


class UsageFile:
    """Adds up the usage of a run. Raises UsageError at once if the file is not writable, before
    anything is spent."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path = Path(options["usage_file"]) if options["usage_file"] else None
        self._session_id = ""
        self._model = options["model"] or ""
        self._provider = options["provider"] or ""
        self._usage = Usage()
        self._ended: TurnEnded | None = None
        if self._path is not None:
            _check(self._path)

    def add(self, record: Record) -> None:
        self._session_id = record.session_id
        match record.event:
            case SessionOpened() | ModelSwitched() as event:
                self._model, self._provider = event.model, event.provider
            case ReplyAdded() as event:
                self._model, self._provider = event.model, event.provider
            case CallSettled(usage=usage):
                # Includes assumed usage, which may have been charged.
                self._usage += usage
            case TurnEnded() as event:
                self._ended = event
            case _:
                pass

    def write(self, error: str) -> None:
        """`error` is what prevented the turn from ending, if anything."""
        if self._path is not None:
            self._path.write_bytes(encode(self._facts(error)) + b"\n")

    def _facts(self, error: str) -> JsonObject:
        usage, ended = self._usage, self._ended
        return {
            "session_id": self._session_id,
            "model": self._model,
            "provider": self._provider,
            "api_calls": usage.requests,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
            "estimated_cost_usd": usage.cost,
            "completed": not error and ended is not None and ended.reason == "done",
            "error": error or _why(ended),
        }


def _why(ended: TurnEnded | None) -> str:
    if ended is None:
        return "The turn did not end."
    return "" if ended.reason == "done" else explain_ending(ended, answered=True)


def _check(path: Path) -> None:
    try:
        path.open("ab").close()
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise UsageError(
            f"{path} cannot be written ({why}); name another file with --usage-file."
        ) from error


CODES = {"done": 0, "interrupted": 130}
STOP_SECONDS = 0.05


def run_oneshot(options: dict[str, Any]) -> int:
    ask_before_session(options)
    usage, fault = UsageFile(options), "The run was interrupted."
    try:
        code = asyncio.run(_run(options, usage))
        fault = ""
        return code
    except Exception as error:
        from hermes.credentials.redaction import redact_error

        fault = redact_error(str(error))
        raise
    finally:
        usage.write(fault)


async def _run(options: dict[str, Any], usage: UsageFile) -> int:
    opening = opening_of(options, attended=False)
    printer = JsonPrinter() if options["as_json"] else TextPrinter()
    reader = RunReader(printer, usage)
    async with start(options) as app:
        printer.verifies = app.run.settings.display.file_mutation_verifier
        if options["skills"]:
            opening = await with_skills(app.skills(app.cwd(opening)), opening, options["skills"])
        say = Say(text=options["prompt"], key=app.run.world.new_id("say"))
        session = await _enter(app, opening, say, reader)
        if session is not None:
            await _talk(app, session, await _resolve_references(app, session, say), reader)
    for line in app.run.exit_notices:
        print(line, file=sys.stderr)
    return CODES.get(reader.ended.reason, 1) if reader.ended else 1


async def _resolve_references(app: App, session: Session, say: Say) -> Say:
    """The message with its `@` references resolved."""
    if "@" not in say.text:
        return say
    # Loaded only for messages that have any.
    from hermes.context.session_references import expand_references

    found = await expand_references(app.run, app.models, session, say.text)
    for warning in found.warnings:
        print(warning, file=sys.stderr)
    return replace(say, text=found.text)


async def _enter(app: App, opening: SessionRequest, say: Say, reader: RunReader) -> Session | None:
    """The session; None when the process that holds it has answered the message."""
    while reader.ended is None:
        try:
            return await app.open(opening)
        except SessionBusy:
            answer = await app.post_message(opening, say)
        print(
            "The session is open in another process; the message was queued there.", file=sys.stderr
        )
        async with aclosing(answer) as records:
            await reader.read(records)
    return None


async def _talk(app: App, session: Session, say: Say, reader: RunReader) -> None:
    for line in app.run.notices:
        print(line, file=sys.stderr)
    stopping = asyncio.ensure_future(stop_on_signal(session))
    events = session.subscribe()
    reading = asyncio.ensure_future(reader.read(events))
    try:
        # Messages from other processes come first.
        await session.check_inbox()
        await session.send(say)
        await session.wait_until_idle()
    finally:
        stopping.cancel()
        events.close()
        await reading


async def stop_on_signal(session: Session) -> None:
    """After a signal, stop the running turn and all queued ones."""
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    await signalled.wait()
    while True:
        await session.send(Interrupt())
        await asyncio.sleep(STOP_SECONDS)


class JsonPrinter:
    """Every event as one line of JSON, as it happens."""

    verifies = False

    def show(self, record: Record) -> None:
        sys.stdout.buffer.write(encode(event_line(record)) + b"\n")
        sys.stdout.buffer.flush()


class TextPrinter:
    """Prints only the final answer, and with `verifies` a note about failed edits."""

    verifies = True

    def __init__(self) -> None:
        self.ended: TurnEnded | None = None
        self._text = ""
        self._calls: dict[str, ToolCall] = {}
        self._unmade = FailedEdits()

    def show(self, record: Record) -> None:
        match record.event:
            case ReplyAdded(message=message):
                # Text before a tool call is not the answer.
                self._text = "" if message.calls else message.text
                self._calls = {call.id: call for call in message.calls}
            case ToolFinished(result=result) if call := self._calls.get(result.call_id):
                self._unmade.note(call, result)
            case Notice(kind="warn", text=text):
                print(text, file=sys.stderr)
            case TurnEnded() as ended:
                self.ended = ended
                self._finish(ended)
            case _:
                pass

    def _finish(self, ended: TurnEnded) -> None:
        text, self._text = self._text, ""
        if text:
            print(_safe(text), flush=True)
        if words := explain_ending(ended, answered=bool(text)):
            print(f"error: {words}" if is_error(ended) else words, file=sys.stderr)
        if self.verifies and text and (words := self._unmade.warning()):
            print(words, file=sys.stderr)


def _safe(text: str) -> str:
    """Programs get the raw text; on a terminal, control sequences are removed."""
    if not sys.stdout.isatty():
        return text
    from hermes.commands.formatting import sanitize

    return sanitize(text)


class RunReader:
    """Passes events to the printer and the usage file."""

    def __init__(self, printer: JsonPrinter | TextPrinter, usage: UsageFile) -> None:
        self.ended: TurnEnded | None = None
        self._printer: JsonPrinter | TextPrinter | None = printer
        self._usage = usage

    async def read(self, records: AsyncIterator[Record]) -> None:
        async for record in records:
            self._usage.add(record)
            if isinstance(record.event, TurnEnded):
                self.ended = record.event
            self._show(record)

    def _show(self, record: Record) -> None:
        """After a broken pipe, the turn continues without output."""
        try:
            if self._printer is not None:
                self._printer.show(record)
        except BrokenPipeError:
            self._printer = None
