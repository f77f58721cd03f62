"""`hermes -z PROMPT`: one turn, the answer on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hermes.app.build import App
from hermes.app.opening import Opening
from hermes.app.start import start
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject
from hermes.core.commands import Interrupt, Say
from hermes.core.errors import SessionBusy
from hermes.core.events import Record, ReplyAdded, TurnEnded
from hermes.core.prompt import Notice
from hermes.core.session import Session
from hermes.core.transcript import Transcript, fold

CODES = {"done": 0, "interrupted": 130}
STOP_SECONDS = 0.05


def run_oneshot(options: dict[str, Any]) -> int:
    app = start(options)
    opening = Opening(
        source="cli",
        resume=options["resume"] or "",
        newest=options["newest"],
        attended=False,
        platform="cli",
        rules=not options["ignore_rules"],
    )
    return asyncio.run(_run(app, opening, options))


async def _run(app: App, opening: Opening, options: dict[str, Any]) -> int:
    printer = JsonPrinter() if options["as_json"] else TextPrinter()
    say = Say(text=options["prompt"], key=app.world.new_id("say"))
    async with app:
        session = await _enter(app, opening, say, printer)
        if session is not None:
            await _talk(app, session, say, printer)
        ended = printer.ended
        if options["usage_file"]:
            transcript = fold(await app.library.records(printer.session_id))
            _write_usage(Path(options["usage_file"]), printer.session_id, transcript, ended)
        return CODES.get(ended.reason, 1) if ended else 1


async def _enter(app: App, opening: Opening, say: Say, printer: Printer) -> Session | None:
    """The session; None when the process that was in it has answered the message itself."""
    while printer.ended is None:
        try:
            return await app.open(opening)
        except SessionBusy:
            answer = await app.leave_word(opening, say)
        print("The session is open elsewhere; the message was left there.", file=sys.stderr)
        async with aclosing(answer) as records:
            await _read(records, printer)
    return None


async def _talk(app: App, session: Session, say: Say, printer: Printer) -> None:
    for line in app.news:
        print(line, file=sys.stderr)
    stopping = asyncio.ensure_future(_stop_on_signal(session))
    events = session.subscribe()
    reading = asyncio.ensure_future(_read(events, printer))
    try:
        # What others left for the session came first.
        await session.check_inbox()
        await session.send(say)
        await session.settled()
    finally:
        stopping.cancel()
        events.close()
        await reading


async def _read(records: AsyncIterator[Record], printer: Printer) -> None:
    async for record in records:
        printer.show(record)


async def _stop_on_signal(session: Session) -> None:
    """After a signal nothing goes on: neither the turn that runs nor one that waits."""
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    await signalled.wait()
    while True:
        await session.send(Interrupt())
        await asyncio.sleep(STOP_SECONDS)


class JsonPrinter:
    """Every event as one line of JSON, as it happens."""

    def __init__(self) -> None:
        self.session_id = ""
        self.ended: TurnEnded | None = None

    def show(self, record: Record) -> None:
        self.session_id = record.session_id
        if isinstance(record.event, TurnEnded):
            self.ended = record.event
        line: JsonObject = plain(record.event)
        line["session_id"], line["at"] = record.session_id, record.at
        if record.n:
            line["n"] = record.n
        sys.stdout.buffer.write(encode(line) + b"\n")
        sys.stdout.buffer.flush()


class TextPrinter:
    """The final words only."""

    def __init__(self) -> None:
        self.session_id = ""
        self.ended: TurnEnded | None = None
        self._text = ""

    def show(self, record: Record) -> None:
        self.session_id = record.session_id
        match record.event:
            case ReplyAdded(message=message):
                self._text = message.text
            case Notice(kind="warn", text=text):
                print(text, file=sys.stderr)
            case TurnEnded() as ended:
                self.ended = ended
                self._finish(ended)
            case _:
                pass

    def _finish(self, ended: TurnEnded) -> None:
        if self._text:
            print(self._text, flush=True)
        if ended.error:
            print(f"error: {ended.error}", file=sys.stderr)
        elif ended.reason not in ("done", "interrupted"):
            print(f"error: the turn ended early: {ended.detail}.", file=sys.stderr)


Printer = JsonPrinter | TextPrinter


def _write_usage(
    path: Path, session_id: str, transcript: Transcript, ended: TurnEnded | None
) -> None:
    usage = transcript.usage
    facts: JsonObject = {
        "session_id": session_id,
        "model": transcript.model,
        "provider": transcript.provider,
        "api_calls": usage.requests,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "estimated_cost_usd": usage.cost,
        "completed": ended is not None and ended.reason == "done",
        "error": ended.error if ended else "the turn did not end",
    }
    path.write_bytes(encode(facts) + b"\n")
