"""`/memory`: lists, approves and reverts memory entries, formatted for every surface."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.memory.entries import ChangeSource, MemoryChange, MemoryEntry
    from hermes.memory.service import EntryHistory

USAGE = "Use /memory [list|pending|approve c1|reject c1|why m1|undo [c1]|approval on|off]."
FORGET = "To delete an entry permanently, leave this session and run `hermes memory forget m1`."
LINE = 160


async def memory(here: CommandContext, argument: str) -> Outcome:
    verb, _, rest = argument.partition(" ")
    memories, source = here.app.memory.of(), here.app.memory.by_hand("slash", here.session.id)
    match verb, rest.strip():
        case (("" | "list"), ""):
            return ShowText(text=_list_entries(await memories.entries(), await memories.pending()))
        case "pending", "":
            return ShowText(text=_pending(await memories.pending()))
        case (("approve" | "accept"), number):
            done = await memories.accept(change_number(number), source=source)
            return ShowText(text=outcome_words(done))
        case "reject", number:
            done = await memories.reject(change_number(number), source=source)
            return ShowText(text=outcome_words(done))
        case "why", named if named:
            return ShowText(text="\n".join(why_lines(await here.app.memory.why(named))))
        case "undo", number:
            back = await memories.undo(change_number(number) if number else 0, source=source)
            return ShowText(text="\n".join(f"Taken back: {change_line(each)}" for each in back))
        case "approval", ("on" | "off") as word:
            return ShowText(text=here.app.memory.set_approval(word == "on"))
        case "forget", _:
            return ShowText(text=FORGET)
    raise UsageError(USAGE)


def change_number(text: str) -> int:
    """Parse "c12" or "12"; UsageError."""
    number = text.strip().removeprefix("c")
    if not number.isdecimal():
        raise UsageError(f"“{text}” is not a change id; use the form c12.")
    return int(number)


def outcome_words(outcome: object) -> str:
    """The result of a change, or why it was rejected."""
    words: str = getattr(outcome, "error", "") or getattr(outcome, "message", "")
    return sanitize(words)


def entry_line(entry: MemoryEntry) -> str:
    hidden = f"  (not shown to models: {entry.finding})" if entry.finding else ""
    return f"m{entry.id:<5} {entry.target:7} {one_line(entry.text, LINE)}{hidden}"


def change_line(change: MemoryChange) -> str:
    text = "[forgotten]" if change.forgotten else one_line(change.text, LINE)
    verb = f"accept {change.action}" if change.settles and change.action != "reject" else ""
    verb = f"undo c{change.reverts}" if change.reverts else verb or change.action
    waits = f"  (waits: {change.held})" if change.open else ""
    target = f"m{change.entry}"
    return f"c{change.id:<5} {format_time(change.at)}  {verb:14} {target:6} {text}{waits}".rstrip()


def why_lines(why: EntryHistory) -> list[str]:
    """An entry and its history."""
    first = why.changes[0]
    head = one_line(why.entry.text) if why.entry else "(nothing any more)"
    lines = [f"m{first.entry}  {first.target}: {head}"]
    for change, said in zip(why.changes, why.said, strict=True):
        lines.append(change_line(change))
        lines.append(f"       {source_words(change.source)}")
        if said:
            lines.append(f"       “{one_line(said, LINE)}”")
    return lines


def source_words(source: ChangeSource) -> str:
    """Describe the source of a change."""
    match source.kind:
        case "file":
            return "the file was edited by hand"
        case "person":
            return f"by command of the {source.person} ({source.surface})"
        case "review":
            verb = "found on a look back over"
        case _:
            verb = "in"
    place = f"{source.session_id}:{source.n}" if source.n else source.session_id
    words = f"{verb} session {place}, said by the {source.person} on {source.surface}"
    if source.origins:
        words += f", with text from {', '.join(source.origins)} in view"
    return f"{words}, approved by {source.approved_by}" if source.approved_by else words


def format_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _list_entries(entries: tuple[MemoryEntry, ...], pending: tuple[MemoryChange, ...]) -> str:
    lines = [entry_line(entry) for entry in entries] or ["Memory is empty."]
    if pending:
        lines.append(f"{len(pending)} change(s) wait for approval: /memory pending")
    return "\n".join(lines)


def _pending(pending: tuple[MemoryChange, ...]) -> str:
    if not pending:
        return "Nothing waits."
    lines = [change_line(change) for change in pending]
    first = f"c{pending[0].id}"
    return "\n".join((*lines, f"/memory approve {first} or /memory reject {first} decides."))


MEMORY_COMMANDS = (
    SlashCommand(
        "memory",
        "Show memory entries and pending changes.",
        memory,
        arguments="[pending|approve|reject|why|undo|approval]",
        category="info",
    ),
)
