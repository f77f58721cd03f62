"""The text at the start and the end of a session, its skin and its language."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import replace
from hermes.commands.formatting import format_elapsed, format_money, one_line, plural, sanitize
from hermes.commands.history import count_messages, exchanges
from hermes.commands.language import load_language
from hermes.commands.registry import CommandContext, SlashCommand, Suggestion, suggest
from hermes.config.home import Home
from hermes.config.session_settings import DisplaySettings
from hermes.core.errors import HermesError
from hermes.core.transcript import Transcript
from hermes.surfaces.cli.chat.cells import cut, wrap
from hermes.surfaces.cli.chat.inline_markdown import plain_words
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import find_skin, skin_names

NEWS = 4

KEYS = (
    "Enter sends · Alt+Enter or Ctrl+J: new line · Ctrl+C stops the turn, twice quits · "
    "Ctrl+D quits\n"
    "Ctrl+O shows the last tool output · Ctrl+R searches your input history · "
    "Ctrl+G opens your editor\n"
    "!command runs a command · @ refers to files"
)


def notice_rows(lines: Sequence[str], paint: Paint, width: int) -> list[str]:
    """Notices at the start: a few, each wrapped to the width."""
    shown = [
        "\n".join(
            paint(f"  {row}", "warn")
            for part in sanitize(line).split("\n")
            for row in wrap(part, width - 2)
        )
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
    template = "Resuming {name}: {messages} messages, {calls} tool calls"
    head = paint.say(template, name=name, messages=count.messages, calls=count.calls)
    rows = [paint(cut(head, width), "bold")]
    shown = display.resume_exchanges if display.resume_display == "full" else 0
    for exchange in exchanges(transcript.messages, shown):
        lines = wrap(f"❯ {exchange.prompt}", width, hang="  ")
        if exchange.calls:
            lines.append(f"  ┊ {plural(exchange.calls, 'tool call')}")
        is_raw = display.final_response_markdown == "raw"
        answer = exchange.answer if is_raw else plain_words(exchange.answer)
        for line in answer.split("\n") if answer else ():
            lines += wrap(f"  {line}", width, hang="  ")
        rows += [paint(line, "dim") for line in lines]
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
        say(messages, messages=count.messages, said=count.user, calls=count.calls),
    ]
    if transcript.usage.cost is not None:
        facts.append(say("Cost: {cost}", cost=format_money(transcript.usage.cost)))
    back = paint(f"  hermes --resume {session_id}", "bold")
    rows = [paint(row, "dim") for row in wrap("   ".join(facts), width)]
    return "\n".join((say("Resume this session with:"), back, *rows))


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


async def skin(here: CommandContext, argument: str) -> str:
    tuned, home = here.app.controls[here.session.id], here.app.context.home.root
    if not argument:
        lines = [
            f"{'●' if name == tuned.display.skin else ' '} {name:<16} {description}"
            for name, description in skin_names(home).items()
        ]
        return "\n".join((*lines, "/skin NAME applies one."))
    found = find_skin(argument, home)
    tuned.display = replace(tuned.display, skin=argument)
    description = f" {found.description}" if found.description else ""
    return (
        f"{argument}:{description} `hermes config set display.skin {argument}` makes it permanent."
    )


async def complete_skins(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    return suggest(skin_names(here.app.context.home.root), begun)


SKIN_COMMANDS = (
    SlashCommand(
        "skin [NAME]",
        "List skins, or apply one.",
        skin,
        surfaces=("cli",),
        complete=complete_skins,
        group="Appearance",
    ),
)
