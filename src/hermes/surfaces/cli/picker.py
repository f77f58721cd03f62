"""A selection list in the terminal: arrows move, typing searches, Enter selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.cursor_shapes import CursorShape
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output import Output

from hermes.commands.formatting import one_line
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.command_context import PickerRow

ROWS = 14
HINT = "↑↓ move · type to search · Enter selects · Esc cancels"


class Picker:
    """See `output.pick`."""

    def __init__(
        self,
        title: str,
        rows: Sequence[PickerRow],
        *,
        chosen: str = "",
        as_typed: Callable[[str], PickerRow] | None = None,
    ) -> None:
        self._title = title
        self._rows = tuple(rows)
        self._as_typed = as_typed
        self._typed = ""
        values = [row.value for row in rows]
        self._index = values.index(chosen) if chosen in values else 0

    async def run(self, *, input: Input | None = None, output: Output | None = None) -> str | None:
        """The value of the selected row; None when the user cancels."""
        app: Application[str | None] = Application(
            layout=Layout(Window(FormattedTextControl(self._draw, show_cursor=False))),
            key_bindings=self._keys(),
            erase_when_done=True,
            cursor=CursorShape.BLOCK,
            input=input,
            output=output,
        )
        app.ttimeoutlen = 0.05
        return await app.run_async()

    @property
    def shown(self) -> tuple[PickerRow, ...]:
        """The rows that contain every typed word."""
        words = self._typed.lower().split()
        found = tuple(
            row for row in self._rows if all(w in f"{row.text} {row.note}".lower() for w in words)
        )
        typed = self._typed.strip()
        if self._as_typed is None or not typed or any(row.text == typed for row in found):
            return found
        return (*found, self._as_typed(typed))

    def _draw(self) -> StyleAndTextTuples:
        rows = self.shown
        first = max(0, min(self._index - ROWS // 2, len(rows) - ROWS))
        width = max((cells(row.text) for row in rows[first : first + ROWS]), default=0)
        lines: StyleAndTextTuples = [
            ("bold", self._title),
            ("", "  "),
            ("fg:ansicyan", self._typed),
        ]
        for index, row in enumerate(rows[first : first + ROWS], start=first):
            here = index == self._index
            style = "reverse" if here else "fg:ansibrightblack" if row.faint else ""
            gap = " " * (min(width, 48) - cells(row.text))
            lines.append((style, f"\n{'❯' if here else ' '} {row.text}{gap}"))
            lines.append(("fg:ansibrightblack", f"  {one_line(row.note, 60)}"))
        if not rows:
            lines.append(("fg:ansiyellow", "\n  No match."))
        more = len(rows) - ROWS
        rest = f"{len(rows)} in all · " if more > 0 else ""
        lines.append(("fg:ansibrightblack", f"\n{rest}{HINT}"))
        return lines

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -ROWS, "pagedown": ROWS}

        def add_move(name: str, step: int) -> None:
            @keys.add(name)
            def move(event: KeyPressEvent) -> None:
                self._index = max(0, min(self._index + step, len(self.shown) - 1))

        for name, step in steps.items():
            add_move(name, step)

        @keys.add("enter")
        def take(event: KeyPressEvent) -> None:
            if rows := self.shown:
                event.app.exit(result=rows[self._index].value)

        @keys.add("escape")
        @keys.add("c-d")
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add("c-c")
        def leave_all(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt())

        @keys.add("backspace")
        def erase(event: KeyPressEvent) -> None:
            self._search(self._typed[:-1])

        @keys.add("c-u")
        def clear(event: KeyPressEvent) -> None:
            self._search("")

        @keys.add(Keys.Any)
        @keys.add(Keys.BracketedPaste)
        def typed(event: KeyPressEvent) -> None:
            self._search(self._typed + "".join(c for c in event.data if c.isprintable()))

        return keys

    def _search(self, typed: str) -> None:
        self._typed, self._index = typed, 0
