"""The text at the start and the end of a session, and its display settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.app.app import App
from hermes.commands.formatting import format_elapsed, format_money, one_line, sanitize
from hermes.commands.history import RecapExchange, count_messages, exchanges
from hermes.commands.language import load_language
from hermes.config.environment import env_flag
from hermes.config.home import Home
from hermes.config.session_settings import DisplaySettings
from hermes.core.errors import HermesError
from hermes.core.session import Session
from hermes.core.transcript import Transcript
from hermes.surfaces.cli.chat.cells import cells, cut, wrap
from hermes.surfaces.cli.chat.reply import plain_words
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.status_bar import StatusBar
from hermes.surfaces.cli.skins.skin import find_skin

NEWS = 4
# Rows are one cell narrower than the window.
COMPACT_WIDTH = 79
HELP = "/help"

KEYS = (
    "Enter sends · Alt+Enter or Ctrl+J: new line · Ctrl+C stops the turn, twice quits · "
    "Ctrl+D quits\n"
    "Ctrl+R searches your input history · Ctrl+G opens your editor · !command runs a command · "
    "@ refers to files"
)


def introduction(
    transcript: Transcript,
    *,
    asks: bool,
    paint: Paint,
    width: int,
    place: str = "",
    skills: int = 0,
    compact: bool = False,
) -> str:
    """The model, the approval mode, where commands run, and the number of tools and skills."""
    facts = [f"{transcript.model} ({transcript.provider})"]
    is_wide = width >= COMPACT_WIDTH and not compact
    if is_wide:
        facts += [paint.say("asks before risky effects")] if asks else []
        facts += [place] if place else []
    means = _counts(transcript, skills) if is_wide else []
    means += [HELP] * is_wide
    while len(facts) > 1 and not _fits(facts, width):
        means.insert(0, facts.pop())
    if is_wide and _fits((*facts, HELP), width):
        facts.append(means.pop())
    lines = (" · ".join(each) for each in (facts, means) if each)
    rows = [paint(cut(f"  {line}", width), "dim") for line in lines]
    if not asks:
        words = paint.say("YOLO: no approvals, only the worst is refused")
        rows.append(paint(cut(f"  {words}", width), "error"))
    return "\n".join(rows)


def _fits(facts: Sequence[str], width: int) -> bool:
    return cells("  " + " · ".join(facts)) <= width


def _counts(transcript: Transcript, skills: int) -> list[str]:
    tools = len(transcript.opened.tools) if transcript.opened else 0
    counts = (("tools", tools), ("skills", skills))
    return [f"{count} {name} (/{name})" for name, count in counts if count]


def notice_rows(lines: Sequence[str], paint: Paint, width: int) -> list[str]:
    """Notices at the start: a few, each wrapped to the width."""
    shown = [
        "\n".join(paint(f"  {row}", "warn") for row in wrap(sanitize(line), width - 2))
        for line in lines[:NEWS]
    ]
    if len(lines) > NEWS:
        rest = paint.say("… {count} more; `hermes doctor` lists them", count=len(lines) - NEWS)
        shown.append(paint(f"  {rest}", "warn"))
    return shown


def recap(
    transcript: Transcript, session_id: str, display: DisplaySettings, paint: Paint, width: int
) -> str:
    """A summary of a resumed session; empty if display.resume_display is off."""
    if display.resume_display == "off":
        return ""
    count = count_messages(transcript.messages)
    name = one_line(transcript.title) or session_id
    words = "Resuming {name}: {messages} messages, {calls} tool calls"
    head = paint.say(words, name=name, messages=count.messages, calls=count.calls)
    rows = [paint(cut(head, width), "bold")]
    if display.resume_display == "full":
        for exchange in exchanges(transcript.messages, display.resume_exchanges):
            rows += _exchange_rows(
                exchange, paint, width, marks=display.final_response_markdown == "raw"
            )
    return "\n".join(rows)


def farewell(
    transcript: Transcript, session_id: str, *, seconds: float, paint: Paint, width: int
) -> str:
    """How to resume the session, and its statistics."""
    count = count_messages(transcript.messages)
    title = f" ({one_line(transcript.title)})" if transcript.title else ""
    say, messages = paint.say, "Messages: {messages} ({said} user, {calls} tool calls)"
    facts = [
        say("Session: {id}", id=f"{session_id}{title}"),
        say("Duration: {time}", time=format_elapsed(seconds)),
        say(messages, messages=count.messages, said=count.said, calls=count.calls),
    ]
    if transcript.usage.cost is not None:
        facts.append(say("Cost: {cost}", cost=format_money(transcript.usage.cost)))
    back = paint(f"  hermes --resume {session_id}", "bold")
    rows = [paint(row, "dim") for row in wrap("   ".join(facts), width)]
    return "\n".join((say("Resume this session with:"), back, *rows))


def _exchange_rows(exchange: RecapExchange, paint: Paint, width: int, *, marks: bool) -> list[str]:
    rows = [paint(row, "dim") for row in wrap(f"❯ {exchange.said}", width, hang="  ")]
    if exchange.calls:
        noun = "tool call" if exchange.calls == 1 else "tool calls"
        rows.append(paint(f"  ┊ {exchange.calls} {noun}", "dim"))
    answer = exchange.answer if marks else plain_words(exchange.answer)
    for line in answer.split("\n") if answer else ():
        rows += (paint(row, "dim") for row in wrap(f"  {line}", width, hang="  "))
    return rows


def update_status(
    app: App, session: Session, before: StatusBar | None, entered_at: float
) -> StatusBar:
    """The updated status. Slow lookups happen only when the model changes."""
    transcript, tuned = session.transcript, app.controls[session.id]
    status = before or StatusBar(started_at=entered_at)
    if status.model != transcript.model:
        status.model = transcript.model
        status.window = app.window(transcript.model, transcript.provider)
    status.used = transcript.last_prompt
    status.title = transcript.title
    status.yolo = tuned.mode == "off"
    status.cost = transcript.usage.cost if tuned.display.show_cost else None
    status.shown = tuned.display.status_bar
    status.compactions = len(transcript.compactions)
    return status


def session_banner(
    app: App, session: Session, paint: Paint, *, width: int, place: str, skills: int, compact: bool
) -> str:
    """The banner; empty with HERMES_QUIET."""
    if env_flag(app.run.env, "HERMES_QUIET"):
        return ""
    return introduction(
        session.transcript,
        asks=app.controls[session.id].mode != "off",
        paint=paint,
        width=width,
        place=place,
        skills=skills,
        compact=compact,
    )


async def skill_count(app: App, cwd: str) -> int:

    scanned = await asyncio.to_thread(app.skills(cwd).scan.scan)
    return len(scanned.entries)


def apply_display(paint: Paint, display: DisplaySettings, home: Home) -> str:
    """Apply the skin and the language; the problem, if any."""
    if display.language != paint.say.name:
        paint.say = load_language(display.language)
    if display.skin == paint.skin.name:
        return ""
    try:
        paint.apply_skin(find_skin(display.skin, home.root))
    except HermesError as error:
        return str(error)
    return ""
