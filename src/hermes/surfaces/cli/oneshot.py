"""`hermes -z PROMPT`: one turn, the answer on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from hermes.app.build import App
from hermes.app.start import start
from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.commands.endings import explain_ending, is_error
from hermes.commands.unmade import FailedEdits
from hermes.core.commands import Interrupt, Say
from hermes.core.errors import SessionBusy
from hermes.core.events import Record, ReplyAdded, ToolFinished, TurnEnded
from hermes.core.messages import ToolCall
from hermes.core.prompt import Notice
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.skills.library import with_skills
from hermes.surfaces.cli.event_lines import event_line
from hermes.surfaces.cli.hook_consent import ask_before_session
from hermes.surfaces.cli.source import opening_of
from hermes.surfaces.cli.usage_file import UsageFile

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
        printer.verifies = app.settings.display.file_mutation_verifier
        if options["skills"]:
            opening = await with_skills(app.skills(app.cwd(opening)), opening, options["skills"])
        say = Say(text=options["prompt"], key=app.world.new_id("say"))
        session = await _enter(app, opening, say, reader)
        if session is not None:
            await _talk(app, session, await _resolve_references(app, session, say), reader)
    for line in app.parting:
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
    for line in app.news:
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
    from hermes.commands.visible import sanitize

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
