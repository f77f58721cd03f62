"""The panel of an approval: what would happen, framed, with nothing hidden."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from hermes.codec.json import encode
from hermes.commands.formatting import escape_invisible, plural, sanitize, short_path
from hermes.commands.tool_calls import unwrap_call
from hermes.core import effects
from hermes.core.events import ApprovalAsked, QuestionAsked
from hermes.core.messages import ToolCall
from hermes.core.ports import Workspace
from hermes.surfaces.cli.chat.cells import cells, wrap
from hermes.surfaces.cli.chat.diff_view import diff_rows
from hermes.surfaces.cli.chat.screen import Paint
from hermes.tools.files.edits import FileEdit, diff_of, text_of
from hermes.tools.files.preview import preview_edits

log = logging.getLogger(__name__)

MOST_LINES = 400
PREVIEW_SECONDS = 3.0
# Lines of a diff in the panel; the details have all.
DIFF_LINES = 12
FRAME_CELLS = 100

_TITLES: dict[type[effects.Effect], str] = {
    effects.RunCommand: "Run this command?",
    effects.SignalProcess: "Act on this process?",
    effects.ReadPath: "Read this file?",
    effects.WritePath: "Write this file?",
    effects.DeletePath: "Delete this file?",
    effects.FetchUrl: "Fetch this URL?",
    effects.ReadHistory: "Read past sessions?",
    effects.Remember: "Remember this?",
    effects.ChangeSkill: "Change this skill?",
    effects.Schedule: "Change the scheduled jobs?",
    effects.UseSecret: "Use this secret?",
    effects.CallServer: "Call this MCP tool?",
    effects.Draw: "Generate this image?",
    effects.UseTool: "Use this tool?",
}


class ApprovalPanel:
    """Lays out one approval. `edits` are the changes that the call would make to files."""

    def __init__(
        self, asked: ApprovalAsked, paint: Paint, width: int, edits: Sequence[FileEdit] = ()
    ) -> None:
        self._asked = asked
        self._paint = paint
        self._width = min(width, FRAME_CELLS)
        path = asked.effect.path if isinstance(asked.effect, effects.WritePath) else None
        self._edit = next((edit for edit in edits if edit.path == path), None)

    @property
    def shows_diff(self) -> bool:
        return self._edit is not None

    def text(self) -> str:
        """The effect with its reason; of a long diff, the beginning."""
        asked, paint, say = self._asked, self._paint, self._paint.say
        rows = self._wrapped(sanitize(asked.reason))
        rows += [paint(row, "dim") for row in self._wrapped(" · ".join(self._facts()))]
        rows += ["", *self._subject(DIFF_LINES)]
        if asked.lasting:
            lasting = [
                row for each in asked.lasting for row in self._wrapped(f"! {sanitize(each)}")
            ]
            rows += ["", *(paint(row, "warn") for row in lasting)]
        return self._frame(say(_TITLES[type(asked.effect)]), rows)

    def details(self, call: ToolCall | None) -> str:
        """All lines of the content, and the tool call as the model wrote it."""
        paint, asked = self._paint, self._asked
        rows = [paint(row, "dim") for row in self._wrapped(" · ".join(self._facts()))]
        rows += ["", *self._subject(0)]
        if call is not None:
            arguments = escape_invisible(encode(call.arguments).decode())
            rows += ["", *(paint(row, "dim") for row in self._wrapped(f"{call.name} {arguments}"))]
        rows += [paint(f"{asked.effect.__struct_config__.tag} · {asked.id}", "dim")]
        return self._frame(paint.say("Details"), rows)

    def _wrapped(self, line: str) -> list[str]:
        return [row for each in line.split("\n") for row in wrap(each, self._width - 4)]

    def _facts(self) -> list[str]:
        asked, say = self._asked, self._paint.say
        facts = [say("category {category}", category=sanitize(asked.category))]
        match asked.effect:
            case effects.RunCommand(cwd=cwd, background=background):
                facts.insert(0, say("cwd {folder}", folder=short_path(escape_invisible(cwd))))
                facts += [say("in the background")] if background else []
            case effects.WritePath() if self._edit is not None and self._edit.before is None:
                lines = len((text_of(self._edit.after) or "").splitlines())
                facts = [say("new file"), plural(lines, "line")]
            case effects.WritePath() if self._edit is not None:
                diff = diff_of(self._edit)
                facts = [say("changes the file"), f"+{diff.added} −{diff.removed}"]
            case _:
                pass
        return facts

    def _subject(self, most: int) -> list[str]:
        """What the user decides about."""
        say, paint = self._paint.say, self._paint
        lines = escape_invisible(effects.subject(self._asked.effect)).split("\n")
        rows = [paint(line, "bold") if self._edit else line for line in lines[:MOST_LINES]]
        if (hidden := len(lines) - MOST_LINES) > 0:
            more = say("… {count} more lines that are not shown", count=hidden)
            rows.append(paint(more, "error"))
        if self._edit is not None and (diff := diff_of(self._edit).text):
            rows += diff_rows(diff, paint, self._width - 4, most=most, exact=True)
        return rows

    def _frame(self, title: str, rows: list[str]) -> str:
        """The rows behind a bar, below the title. The right side is open, so that long lines can be
        copied."""
        paint = self._paint
        if paint.skin.words:
            head = f"{paint.say('question:')} {title}"
            return "\n".join((paint(head, "warn"), *(f"  {row}".rstrip() for row in rows)))
        head = f"╭─ ⚠ {title} "
        rule = "─" * max(0, self._width - cells(head))
        bar = paint("│", "warn")
        return "\n".join(
            (
                paint(head + rule, "warn"),
                *(f"{bar} {row}".rstrip() for row in rows),
                paint("╰" + "─" * (self._width - 1), "warn"),
            )
        )


async def find_edits(
    asked: ApprovalAsked, call: ToolCall | None, workspace: Workspace
) -> Sequence[FileEdit]:
    """The changes that the call would make, if they are known soon enough."""
    if call is None or not isinstance(asked.effect, effects.WritePath):
        return ()
    inner = unwrap_call(call)
    try:
        async with asyncio.timeout(PREVIEW_SECONDS):
            return await preview_edits(workspace, inner.name, inner.arguments)
    except TimeoutError:
        return ()
    except Exception:
        # The question must be asked whatever happens to its preview.
        log.exception("no preview of an edit")
        return ()


def question_panel(asked: QuestionAsked, paint: Paint, width: int) -> str:
    """A question of the model or of Hermes."""
    sign = paint.say("question:") if paint.skin.words else "? "
    lines = sanitize(asked.question).split("\n")
    rows = [row for line in lines for row in wrap(f"{sign} {line}", width, hang="   ")]
    return "\n".join(paint(row, "accent") for row in rows)
