"""The text at the start of a chat: model, approvals, tools, skills and a tip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.codec.values import Value
from hermes.core.transcript import Transcript
from hermes.surfaces.cli.chat.cells import cells, cut, pad, wrap
from hermes.surfaces.cli.chat.screen import Paint
from hermes.tools.catalogue import declarations

# Rows are one cell narrower than the window.
COMPACT_WIDTH = 79
LABEL_CELLS = 8
LIST_ROWS = 3
HELP = "/help"
# Tools that are not built in.
OTHERS = "added"

TIPS = (
    "Ctrl+O shows the output of the last tool, pressed again the one before it.",
    "@ refers to files, folders, diffs and web pages: @file:notes.md, @diff, @url:…",
    "!command runs a command without the model.",
    "/help WORD lists the commands that mention a word.",
    "Tab denies an approval with a reason that the model reads.",
    "/btw asks something aside, without adding it to the conversation.",
    "/background works on a task in another session.",
    "/rollback takes back file changes, /undo takes back turns.",
    "Ctrl+R searches your input history, Ctrl+G opens your editor.",
    "/compress shortens a long session, /usage shows how full it is.",
    "/skin changes the colours; `plain` suits screen readers.",
    "`hermes -c` continues the newest session.",
)


class Surroundings(Value):
    """What an introduction says beside the facts of the session."""

    asks: bool = True
    placement: str = ""
    # Categories, one per skill.
    skills: tuple[str, ...] = ()
    tip: str = ""


def introduction(
    transcript: Transcript, found: Surroundings, paint: Paint, width: int, *, compact: bool = False
) -> str:
    facts = [f"{transcript.model} ({transcript.provider})"]
    is_wide = width >= COMPACT_WIDTH and not compact
    if is_wide:
        facts += [paint.say("asks before risky effects")] if found.asks else []
        facts += [found.placement] if found.placement else []
        facts.append(HELP)
    while len(facts) > 1 and cells(_join(facts)) > width:
        facts.pop()
    rows = [paint(cut(_join(facts), width), "dim")]
    if not found.asks:
        warning = paint.say("YOLO: no approvals, only the most dangerous effects are denied")
        rows.append(paint(cut(f"  {warning}", width), "error"))
    if is_wide:
        names = transcript.opened.tools if transcript.opened else ()
        rows += _labelled("Tools", _tools_by_set(names), paint, width)
        rows += _labelled("Skills", _skills_by_category(found.skills), paint, width)
        rows += _labelled("Tip", [found.tip] if found.tip else [], paint, width)
    return "\n".join(rows)


def _join(facts: Sequence[str]) -> str:
    return "  " + " · ".join(facts)


def _tools_by_set(names: Sequence[str]) -> list[str]:
    """Each toolset with its tools."""
    known, by_set = declarations(), dict[str, list[str]]()
    for name in names:
        toolset = known[name].toolset if name in known else OTHERS
        by_set.setdefault(toolset, []).append(name)
    return [
        f"{len(tools)} {toolset}" if toolset == OTHERS else _describe_set(toolset, tools)
        for toolset, tools in by_set.items()
    ]


def _describe_set(toolset: str, tools: Sequence[str]) -> str:
    return toolset if list(tools) == [toolset] else f"{toolset} ({', '.join(tools)})"


def _skills_by_category(categories: Sequence[str]) -> list[str]:
    counts = Counter(category or "general" for category in categories)
    return [f"{category} ({count})" for category, count in sorted(counts.items())]


def _labelled(label: str, items: Sequence[str], paint: Paint, width: int) -> list[str]:
    """A few rows of items behind a label."""
    if not items:
        return []
    room = width - 2 - LABEL_CELLS
    rows = wrap(" · ".join(items), room)
    if len(rows) > LIST_ROWS:
        rows = [*rows[: LIST_ROWS - 1], cut(f"{rows[LIST_ROWS - 1]} …", room)]
    title = paint.say(label)
    labels = [paint(pad(title, LABEL_CELLS), "accent"), *[" " * LABEL_CELLS] * (len(rows) - 1)]
    return [f"  {head}{paint(row, 'dim')}" for head, row in zip(labels, rows, strict=True)]
