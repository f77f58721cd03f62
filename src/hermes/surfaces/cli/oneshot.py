"""`hermes -z PROMPT`: one turn, the answer on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

from hermes.app.build import App
from hermes.app.opening import Opening
from hermes.app.start import start
from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject
from hermes.core.commands import Interrupt, Say
from hermes.core.events import Record, ReplyAdded, TurnEnded
from hermes.core.prompt import Notice
from hermes.core.session import Session

CODES = {"done": 0, "interrupted": 130}


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
    async with app:
        session = await app.open(opening)
        printer = JsonPrinter() if options["as_json"] else TextPrinter()
        for line in app.news:
            print(line, file=sys.stderr)
        _interrupt_on_signal(session)
        events = session.subscribe()
        await session.send(Say(text=options["prompt"]))
        reading = asyncio.ensure_future(_read(events, printer))
        try:
            await session.settled()
        finally:
            events.close()
            await reading
        ended = printer.ended
        if options["usage_file"]:
            _write_usage(Path(options["usage_file"]), session, ended)
        return CODES.get(ended.reason, 1) if ended else 1


async def _read(events: Any, printer: TextPrinter | JsonPrinter) -> None:
    async for record in events:
        printer.show(record)


def _interrupt_on_signal(session: Session) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        task = loop.create_task(session.send(Interrupt()))
        task.add_done_callback(lambda _: None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


class JsonPrinter:
    """Every event as one line of JSON, as it happens."""

    def __init__(self) -> None:
        self.ended: TurnEnded | None = None

    def show(self, record: Record) -> None:
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
        self.ended: TurnEnded | None = None
        self._text = ""

    def show(self, record: Record) -> None:
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


def _write_usage(path: Path, session: Session, ended: TurnEnded | None) -> None:
    usage = session.transcript.usage
    facts: JsonObject = {
        "session_id": session.id,
        "model": session.transcript.model,
        "provider": session.transcript.provider,
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
