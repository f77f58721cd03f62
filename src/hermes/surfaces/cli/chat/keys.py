"""Key bindings and pastes of the chat."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.commands.image_files import check_image
from hermes.config.home import Home
from hermes.core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from hermes.surfaces.cli.chat.prompt import PromptScreen

# Pastes up to this many lines are shown in full.
SHOWN_LINES = 5
# Longer entries of the input history are shown as a placeholder.
FOLDED_LINES = 20
KEPT_SECONDS = 7 * 24 * 3600
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LONGEST_PATH = 4096

_NAME = re.compile(r"\[Pasted text #(\d+): \d+ lines\]")
_PICTURE = re.compile(r"\[Image #(\d+): [^\]]*\]")


class Pastes:
    """The contents of placeholders. With a `home`, `keep` saves a copy of pasted text, so that it
    survives a lost terminal."""

    def __init__(self, home: Home | None = None) -> None:
        self._home = home
        self._texts: list[str] = []
        self._pictures: list[str] = []

    def placeholder(self, text: str) -> str:
        """The placeholder of a pasted text, or the text itself if it is short."""
        # Lone surrogates cannot be encoded.
        plain = re.sub(r"[\ud800-\udfff]", "", text.replace("\r\n", "\n").replace("\r", "\n"))
        if picture := _dropped_picture(plain):
            return self.picture(picture)
        lines = plain.rstrip("\n").count("\n") + 1
        if lines <= SHOWN_LINES:
            return plain
        self._texts.append(plain)
        return f"[Pasted text #{len(self._texts)}: {lines} lines]"

    def fold(self, text: str) -> str:
        """A placeholder for a text of an earlier chat that is as long as a paste."""
        return self.placeholder(text) if text.count("\n") >= FOLDED_LINES else text

    def fold_known(self, text: str) -> str:
        """The text with placeholders for the pastes that it contains."""
        for number, paste in enumerate(self._texts, 1):
            if paste.strip() and paste.rstrip("\n") in text:
                lines = paste.rstrip("\n").count("\n") + 1
                text = text.replace(paste.rstrip("\n"), f"[Pasted text #{number}: {lines} lines]")
        return text

    def picture(self, path: str) -> str:
        """The placeholder of an image."""
        self._pictures.append(path)
        name = Path(path).name.replace("]", ")")
        return f"[Image #{len(self._pictures)}: {name}]"

    def expand(self, text: str) -> str:
        """The input with its placeholders replaced."""

        def content(name: re.Match[str]) -> str:
            number = int(name[1])
            return self._texts[number - 1] if 1 <= number <= len(self._texts) else name[0]

        return _NAME.sub(content, text)

    def pictures(self, text: str) -> tuple[str, ...]:
        """The files of the images in a text."""
        numbers = dict.fromkeys(int(found[1]) for found in _PICTURE.finditer(text))
        return tuple(self._pictures[n - 1] for n in numbers if 1 <= n <= len(self._pictures))

    def keep(self, text: str) -> None:
        """Save a copy for a week, readable by its owner only, with secrets masked."""
        if self._home is None or not _NAME.search(text):
            return
        # Loaded at the first paste, for a fast start.
        from hermes.credentials.redaction import line_redactor

        try:
            folder = self._home.ensure_folder(self._home.root / "pastes")
            for old in folder.glob("paste_*.txt"):
                if old.stat().st_mtime < time.time() - KEPT_SECONDS:
                    old.unlink()
            body = line_redactor(self._home)(self.expand(text))
            path = folder / time.strftime("paste_%Y%m%d_%H%M%S.txt")
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as copy:
                copy.write(body)
        except (OSError, ConfigError):
            # The copy is optional; the paste itself is in the input.
            return


def _dropped_picture(text: str) -> str:
    """The path, if the text is only the path of an image, as terminals write dropped files."""
    line = text.strip()
    if not line.lower().rstrip("'\"").endswith(PICTURES) or len(line) > LONGEST_PATH:
        return ""
    if line.startswith("file://"):
        line = unquote(line.removeprefix("file://"))
    elif line[:1] == line[-1:] and line[:1] in ("'", '"'):
        line = line[1:-1]
    else:
        line = re.sub(r"\\(.)", r"\1", line)
    path = Path(line).expanduser()
    try:
        if "\n" in line or not path.is_absolute():
            return ""
        check_image(path)
    except (OSError, UsageError):
        # Only text: the message cannot carry it as an image.
        return ""
    return str(path)


PASTE_TIMEOUT_SECONDS = 1.0
END = "\x1b[201~"


def end_unterminated_pastes(
    app: Application[Any], *, after_seconds: float = PASTE_TIMEOUT_SECONDS
) -> None:
    keyboard = app.input
    if not isinstance(keyboard, Vt100Input):
        return

    def ended() -> None:
        app.key_processor.feed_multiple(keyboard.flush_keys())
        app.key_processor.process_keys()

    keyboard.vt100_parser = _PasteTimeoutParser(
        keyboard.vt100_parser.feed_key_callback, ended, after_seconds
    )


class _PasteTimeoutParser(Vt100Parser):
    def __init__(
        self,
        feed_key_callback: Callable[[KeyPress], None],
        ended: Callable[[], None],
        after_seconds: float,
    ) -> None:
        super().__init__(feed_key_callback)
        self._ended = ended
        self._after_seconds = after_seconds
        self._silence: asyncio.TimerHandle | None = None

    def feed(self, data: str) -> None:
        super().feed(data)
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._in_bracketed_paste:
            loop = asyncio.get_running_loop()
            self._silence = loop.call_later(self._after_seconds, self._end)

    def _end(self) -> None:
        self._silence = None
        if self._in_bracketed_paste:
            self.feed(END)
            self._ended()


# No space is added after these endings.
UNFINISHED = (" ", "/", ":", "=")


def bindings(screen: PromptScreen) -> KeyBindings:
    """Return the key bindings. If several match, the last one wins."""
    keys = KeyBindings()
    in_input = has_focus(DEFAULT_BUFFER)
    asking = Condition(lambda: screen.state.asking())
    is_empty = Condition(lambda: not get_app().current_buffer.text)
    _add_editing_keys(keys, screen, in_input)

    @keys.add("c-c", filter=in_input)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        screen.state.interrupt()

    @keys.add("c-d", filter=in_input & is_empty)
    def _(event: KeyPressEvent) -> None:
        screen.state.leave()

    @keys.add("c-g", filter=in_input & ~asking)
    def _(event: KeyPressEvent) -> None:
        _ = event.app.create_background_task(edit(event.current_buffer))

    @keys.add("c-o", filter=in_input)
    def _(event: KeyPressEvent) -> None:
        screen.state.ask_for_output()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
        event.app.invalidate()

    can_withdraw = in_input & is_empty & ~asking & Condition(lambda: screen.state.waiting())

    @keys.add("up", filter=can_withdraw)
    @keys.add("escape", filter=can_withdraw)
    def _(event: KeyPressEvent) -> None:
        screen.state.take_back(edit=event.key_sequence[0].key == Keys.Up)

    _add_question_keys(keys, screen, in_input & asking, is_empty)
    return keys


def _add_editing_keys(keys: KeyBindings, screen: PromptScreen, when: Filter) -> None:
    @keys.add("enter", filter=when)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            screen.send()

    @keys.add("c-j", filter=when)
    @keys.add("escape", "enter", filter=when)
    def _(event: KeyPressEvent) -> None:
        if screen.just_started:
            # Enter, pressed before the terminal was in raw mode.
            screen.send()
        else:
            event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=when)
    def _(event: KeyPressEvent) -> None:
        shown = screen.pastes.placeholder(event.data)
        event.current_buffer.insert_text(shown)
        _ = event.app.create_background_task(asyncio.to_thread(screen.pastes.keep, shown))

    @Condition
    def has_suggestion() -> bool:
        buffer = get_app().current_buffer
        has_text = bool(buffer.suggestion and buffer.suggestion.text)
        return has_text and buffer.document.is_cursor_at_the_end

    @keys.add("tab", filter=when & has_suggestion & ~has_completions)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.suggestion:
            buffer.insert_text(buffer.suggestion.text)

    @Condition
    def has_one_completion() -> bool:
        completing = get_app().current_buffer.complete_state
        return completing is not None and len(completing.completions) == 1

    @keys.add("tab", filter=when & has_one_completion)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        completing = buffer.complete_state
        assert completing is not None
        if completing.complete_index is None:
            buffer.apply_completion(completing.completions[0])
        buffer.complete_state = None
        if not buffer.text.endswith(UNFINISHED) and buffer.document.is_cursor_at_the_end:
            buffer.insert_text(" ")


def _add_question_keys(
    keys: KeyBindings, screen: PromptScreen, when: Filter, is_empty: Filter
) -> None:
    typing_reason = Condition(lambda: screen.state.asking_reason())
    chooses = when & is_empty & ~Condition(lambda: screen.state.hiding()) & ~typing_reason
    approves = chooses & Condition(lambda: screen.state.approving())

    def add_choice(name: str, filter: Filter = chooses) -> None:
        @keys.add(name, filter=filter)
        def _(event: KeyPressEvent) -> None:
            if screen.in_flow and (name.isdigit() or name == "?"):
                screen.add_to_draft(name)
            else:
                screen.state.key(name)

    for name in (*"123456789", "left", "right", "up", "down"):
        add_choice(name)
    for name in ("tab", "?"):
        add_choice(name, approves)

    @keys.add("escape", filter=when, eager=True)
    def _(event: KeyPressEvent) -> None:
        if screen.state.asking_reason():
            event.current_buffer.reset()
        screen.state.key("escape")

    in_flow = when & Condition(lambda: screen.in_flow)

    @keys.add(Keys.Any, filter=in_flow)
    def _(event: KeyPressEvent) -> None:
        screen.add_to_draft(event.data)

    @keys.add("enter", filter=in_flow)
    @keys.add(Keys.BracketedPaste, filter=in_flow)
    def _(event: KeyPressEvent) -> None:
        screen.add_to_draft(screen.pastes.placeholder(event.data) if len(event.data) > 1 else "")


async def edit(buffer: Buffer) -> None:
    await buffer.open_in_editor()
