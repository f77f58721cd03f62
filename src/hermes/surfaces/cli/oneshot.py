"""`hermes -z PROMPT`: one turn, the answer on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.commands.formatting import explain_ending, is_error, sanitize
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
from hermes.surfaces.cli.hook_consent import ask_before_session


def session_request(options: Mapping[str, Any], *, attended: bool) -> SessionRequest:
    """The source is `--source`, else $HERMES_SESSION_SOURCE, else "cli"."""
    default_source = process_environment().get("HERMES_SESSION_SOURCE", "").strip()
    source = options.get("source") or default_source or "cli"
    return SessionRequest(
        source=source,
        attended=attended,
        platform="cli",
        resume=options.get("resume") or "",
        newest=options.get("newest"),
        context_files=not options.get("ignore_rules"),
        worktree=bool(options.get("worktree")),
        tell_id=bool(options.get("pass_session_id")),
        stay=bool(options.get("no_restore_cwd")),
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


class RunSummary:
    """The usage of a run and how it ended, for `--usage-file`. Raises UsageError at once if the
    file is not writable, before anything is spent."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path = Path(options["usage_file"]) if options["usage_file"] else None
        self.session_id = ""
        self._model = options["model"] or ""
        self._provider = options["provider"] or ""
        self._usage = Usage()
        self.ended: TurnEnded | None = None
        try:
            if self._path is not None:
                self._path.open("ab").close()
        except OSError as error:
            why = (error.strerror or "unknown").lower()
            raise UsageError(
                f"{self._path} cannot be written ({why}); give --usage-file another file."
            ) from error

    def add(self, record: Record) -> None:
        self.session_id = record.session_id
        match record.event:
            case SessionOpened() | ModelSwitched() | ReplyAdded() as event:
                self._model, self._provider = event.model, event.provider
            case CallSettled(usage=usage):
                # Includes assumed usage, which may have been charged.
                self._usage += usage
            case TurnEnded() as event:
                self.ended = event
            case _:
                pass

    def write(self, error: str) -> None:
        """Write the summary. `error` is what prevented the turn from ending, if anything."""
        if self._path is None:
            return
        usage, ended = self._usage, self.ended
        done = ended is not None and ended.reason == "done"
        if ended is None:
            error = error or "The turn did not end."
        elif not done:
            error = error or explain_ending(ended, answered=True)
        facts = {
            "session_id": self.session_id,
            "model": self._model,
            "provider": self._provider,
            "api_calls": usage.requests,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
            "estimated_cost_usd": usage.cost,
            "completed": not error and done,
            "error": error,
        }
        self._path.write_bytes(encode(facts) + b"\n")


CODES = {"done": 0, "interrupted": 130}
STOP_SECONDS = 0.05


def run_oneshot(
    options: Mapping[str, Any],
    *,
    images: Sequence[Path] = (),
    quiet: bool = False,
    show_id: bool = False,
) -> int:
    """The exit code. `quiet` leaves out notices; `show_id` prints the id of the session."""
    ask_before_session(options)
    summary, fault = RunSummary(options), "The run was interrupted."
    try:
        code = asyncio.run(_run(options, summary, images, quiet=quiet, show_id=show_id))
        fault = ""
        return code
    except Exception as error:
        from hermes.credentials.redaction import redact_error

        fault = redact_error(str(error))
        raise
    finally:
        summary.write(fault)


async def _run(
    options: Mapping[str, Any],
    summary: RunSummary,
    images: Sequence[Path],
    *,
    quiet: bool,
    show_id: bool,
) -> int:
    request = session_request(options, attended=bool(options.get("ask")))
    async with start(options) as app:
        verifies = app.context.settings.display.file_mutation_verifier
        reader = RunReader(
            summary, print_event if options["as_json"] else TextPrinter(verifies).show
        )
        if options["skills"]:
            from hermes.skills.library import with_skills

            request = await with_skills(app.skills(app.cwd(request)), request, options["skills"])
        attached = []
        if images:
            from hermes.commands.input import attach_image

            attached = [await attach_image(app.context.home, path) for path in images]
        key = app.context.world.new_id("say")
        say = Say(text=options["prompt"], images=tuple(attached), key=key)
        session = await _enter(app, request, say, reader)
        if session is not None:
            for line in () if quiet else app.context.notices:
                print(line, file=sys.stderr)
            if "@" in say.text:
                # Loaded only for messages that may have references.
                from hermes.context.references import expand_references

                expanded = await expand_references(app.context, app.models, session, say.text)
                say = replace(say, text=expanded.text)
                for warning in expanded.warnings:
                    print(warning, file=sys.stderr)
            await _talk(session, say, reader, asks=request.attended)
        if show_id:
            print(f"session: {summary.session_id}", file=sys.stderr)
    for line in app.context.exit_notices:
        print(line, file=sys.stderr)
    return CODES.get(summary.ended.reason, 1) if summary.ended else 1


async def _enter(app: App, request: SessionRequest, say: Say, reader: RunReader) -> Session | None:
    """The session; None when the process that holds it has answered the message."""
    while reader.summary.ended is None:
        try:
            return await app.open(request)
        except SessionBusy:
            answer = await app.post_message(request, say)
        print(
            "Another process has this session open; the message is queued there.", file=sys.stderr
        )
        async with aclosing(answer) as records:
            await reader.read(records)
    return None


async def _talk(session: Session, say: Say, reader: RunReader, *, asks: bool) -> None:
    stopping = asyncio.ensure_future(_stop_on_signal(session))
    answering = asyncio.ensure_future(_take_answers(session)) if asks else None
    events = session.subscribe()
    reading = asyncio.ensure_future(reader.read(events))
    try:
        # Messages from other processes come first.
        await session.check_inbox()
        await session.send(say)
        await session.wait_until_idle()
    finally:
        stopping.cancel()
        if answering is not None:
            answering.cancel()
        events.close()
        await reading


async def _take_answers(session: Session) -> None:
    from hermes.surfaces.cli.caller_answers import CallerAnswers

    answers = CallerAnswers(session)
    await asyncio.gather(answers.follow(session.subscribe()), answers.read_lines())


async def _stop_on_signal(session: Session) -> None:
    """Wait for a signal, then stop the running turn and all queued ones."""
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    await signalled.wait()
    while True:
        await session.send(Interrupt())
        await asyncio.sleep(STOP_SECONDS)


def print_event(record: Record) -> None:
    """One line of JSON."""
    sys.stdout.buffer.write(encode(event_line(record)) + b"\n")
    sys.stdout.buffer.flush()


class TextPrinter:
    """Prints only the final answer, and with `verifies` a note about failed edits."""

    def __init__(self, verifies: bool) -> None:
        self._verifies = verifies
        self._text = ""
        self._calls: dict[str, ToolCall] = {}
        self._failed_edits = FailedEdits()

    def show(self, record: Record) -> None:
        match record.event:
            case ReplyAdded(message=message):
                # Text before a tool call is not the answer.
                self._text = "" if message.calls else message.text
                self._calls = {call.id: call for call in message.calls}
            case ToolFinished(result=result) if call := self._calls.get(result.call_id):
                self._failed_edits.note(call, result)
            case Notice(kind="warn" | "wait", text=text):
                print(text, file=sys.stderr, flush=True)
            case TurnEnded() as ended:
                self._finish(ended)
            case _:
                pass

    def _finish(self, ended: TurnEnded) -> None:
        text, self._text = self._text, ""
        if text:
            # Programs get the raw text; on a terminal, control sequences are removed.
            print(sanitize(text) if sys.stdout.isatty() else text, flush=True)
        if message := explain_ending(ended, answered=bool(text)):
            print(f"error: {message}" if is_error(ended) else message, file=sys.stderr)
        if self._verifies and text and (message := self._failed_edits.warning()):
            print(message, file=sys.stderr)


class RunReader:
    """Passes events to the summary and shows them."""

    def __init__(self, summary: RunSummary, show: Callable[[Record], None]) -> None:
        self.summary = summary
        self._show: Callable[[Record], None] | None = show

    async def read(self, records: AsyncIterator[Record]) -> None:
        async for record in records:
            self.summary.add(record)
            try:
                if self._show is not None:
                    self._show(record)
            except BrokenPipeError:
                # The turn continues without output.
                self._show = None
