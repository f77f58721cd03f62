"""`/memory`, and the texts about memory entries for every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.commands.formatting import format_time, one_line, plural, sanitize
from hermes.commands.registry import CommandContext, SlashCommand
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.memory.entries import ChangeSource, MemoryChange, MemoryEntry
    from hermes.memory.service import EntryHistory

FORGET = "To erase an entry permanently, quit and run `hermes memory forget m1`."
LINE = 160


async def memory(here: CommandContext, argument: str) -> str | None:
    verb, _, rest = argument.partition(" ")
    memories, source = here.app.memory.of(), here.app.memory.by_hand("slash", here.session.id)
    match verb, rest.strip():
        case (("" | "list"), ""):
            lines = [*map(entry_line, await memories.entries())] or ["Memory is empty."]
            if pending := await memories.pending():
                lines.append(f"{plural(len(pending), 'pending change')}; see /memory pending")
            return "\n".join(lines)
        case "pending", "":
            pending = await memories.pending()
            if not pending:
                return "No changes are pending."
            first = f"c{pending[0].id}"
            advice = f"Use /memory approve {first} or /memory reject {first}."
            return "\n".join((*map(change_line, pending), advice))
        case (("approve" | "accept" | "reject"), number):
            decide = memories.reject if verb == "reject" else memories.accept
            return outcome_words(await decide(change_number(number), source=source))
        case "why", named if named:
            return "\n".join(why_lines(await here.app.memory.why(named)))
        case "undo", number:
            back = await memories.undo(change_number(number) if number else 0, source=source)
            return "\n".join(f"Undone: {change_line(each)}" for each in back)
        case "approval", ("on" | "off") as word:
            return here.app.memory.set_approval(word == "on")
        case "forget", _:
            return FORGET
    return None


def change_number(text: str) -> int:
    """Parse a change id, "c12" or "12"; raise UsageError for any other text."""
    number = text.strip().removeprefix("c")
    if not number.isdecimal():
        raise UsageError(f"“{text}” is not a change id; use the form c12.")
    return int(number)


def outcome_words(outcome: object) -> str:
    """The result of a change, or why it was rejected."""
    message: str = getattr(outcome, "error", "") or getattr(outcome, "message", "")
    return sanitize(message)


def entry_line(entry: MemoryEntry) -> str:
    hidden = f"  (not shown to models: {entry.finding})" if entry.finding else ""
    return f"m{entry.id:<5} {entry.target:7} {one_line(entry.text, LINE)}{hidden}"


def change_line(change: MemoryChange) -> str:
    text = "[forgotten]" if change.forgotten else one_line(change.text, LINE)
    verb = f"accept {change.action}" if change.settles and change.action != "reject" else ""
    verb = f"undo c{change.reverts}" if change.reverts else verb or change.action
    waits = f"  (pending: {change.held})" if change.open else ""
    target = f"m{change.entry}"
    return f"c{change.id:<5} {format_time(change.at)}  {verb:14} {target:6} {text}{waits}".rstrip()


def why_lines(why: EntryHistory) -> list[str]:
    """An entry and its history."""
    first = why.changes[0]
    head = one_line(why.entry.text) if why.entry else "(no longer remembered)"
    lines = [f"m{first.entry}  {first.target}: {head}"]
    for change, quotation in zip(why.changes, why.said, strict=True):
        lines.append(change_line(change))
        lines.append(f"       {source_words(change.source)}")
        if quotation:
            lines.append(f"       “{one_line(quotation, LINE)}”")
    return lines


def source_words(source: ChangeSource) -> str:
    match source.kind:
        case "file":
            return "from an edit of the file"
        case "person":
            return f"from a command of the {source.person} ({source.surface})"
        case "review":
            verb = "from a review of"
        case _:
            verb = "from"
    position = f"{source.session_id}:{source.n}" if source.n else source.session_id
    description = f"{verb} session {position}, said by the {source.person} on {source.surface}"
    if source.origins:
        description += f", with text from {', '.join(source.origins)} in view"
    return f"{description}, approved by {source.approved_by}" if source.approved_by else description


MEMORY_COMMANDS = (
    SlashCommand(
        "memory [list|pending|approve C1|reject C1|why M1|undo [C1]|approval on/off]",
        "List memory entries; approve, reject, explain and undo changes.",
        memory,
    ),
)
