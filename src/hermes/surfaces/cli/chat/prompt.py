"""The chat on a terminal with cursor control: input, live rows, input history."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.application import create_app_session
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.surfaces.cli.chat.flicker_free_renderer import FlickerFreeOutput, FlickerFreeRenderer
from hermes.surfaces.cli.chat.keys import Pastes, bindings, edit, end_unterminated_pastes
from hermes.surfaces.cli.chat.screen import ChatScreen, Paint

if TYPE_CHECKING:
    from hermes.surfaces.cli.chat.chat_state import ChatState

log = logging.getLogger(__name__)

# Enough for any search, and fast to read.
NEWEST_BYTES = 512 * 1024


class PrivateHistory(FileHistory):
    """The input history in a file, which is created with the first line. If the home is not
    writable, only the history is lost. Secrets are masked. Long entries are folded in memory."""

    def __init__(self, home: Home, pastes: Pastes | None = None) -> None:
        super().__init__(home.history)
        self._home = home
        self._pastes = pastes or Pastes()
        self._redactor: Callable[[str], str] | None = None

    def load_history_strings(self) -> Iterable[str]:
        try:
            with self._home.history.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - NEWEST_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        # An entry is a run of lines that begin with a plus sign.
        entries: list[str] = []
        lines: list[str] = []
        for line in (*text.split("\n"), ""):
            if line.startswith("+"):
                lines.append(line[1:])
            elif lines:
                entries.append("\n".join(lines))
                lines = []
        return [self._pastes.fold(entry) for entry in reversed(entries)]

    def store_string(self, string: str) -> None:
        # Not loaded before the first prompt, for a fast start.
        from hermes.credentials.redaction import line_redactor

        try:
            self._redactor = self._redactor or line_redactor(self._home)
            # A placeholder means nothing to a later chat.
            text = self._redactor(self._pastes.expand(string))
            lines = "".join(f"+{line}\n" for line in text.split("\n"))
            self._home.ensure_folder(self._home.root)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            file = os.open(self._home.history, flags, 0o600)
            try:
                os.write(file, f"\n{lines}".encode("utf-8", "replace"))
            finally:
                os.close(file)
        except (OSError, ConfigError) as error:
            log.warning("history not saved", extra={"why": str(error)})


MENU_ROWS = 10
REDRAW_SECONDS = 0.03
# A shorter pause between two keys is continuous typing.
FLOW_SECONDS = 0.7
# Keys buffered by the terminal arrive within this time.
EARLY_SECONDS = 0.25

STYLE = Style.from_dict(
    {
        "completion-menu": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit fg:ansibrightblack",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "auto-suggestion": "fg:ansibrightblack",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


class PromptScreen(ChatScreen):
    def __init__(
        self,
        stdout: TextIO,
        *,
        term: str,
        lag_seconds: float | None,
        paint: Paint,
        state: ChatState,
        history: History,
        clock: Callable[[], float],
        pastes: Pastes | None = None,
    ) -> None:
        self.paint = paint
        self.state = state
        self.pastes = pastes or Pastes()
        self._clock = clock
        self._output = FlickerFreeOutput(stdout, term)
        self._history = history
        self._prompt = self._new_prompt()
        self._app = self._prompt.app
        self._app.renderer = self._renderer = FlickerFreeRenderer(
            self._app.renderer.style, self._output, lag_seconds=lag_seconds, clock=clock
        )
        self._app.ttimeoutlen = 0.05
        # A signal reports a new size.
        self._app.terminal_size_polling_interval = None
        self._app.min_redraw_interval = REDRAW_SECONDS
        self._app.before_render += lambda _: self._compose()
        self._app.after_render += lambda _: self._note_drawn()
        self._app.key_processor.before_key_press += lambda _: self._note_key()
        # The next key may have waited while this one was handled.
        self._app.key_processor.after_key_press += lambda _: self._note_drawn(again=True)
        self._message: AnyFormattedText = ""
        self._unshown: list[str] = []
        self._put_aside: str | None = None
        self._last_key_at = float("-inf")
        # The user was typing when a question opened and has not paused since: these keys belong to
        # the draft.
        self.in_flow = False
        # Until then, a key may have been pressed before the prompt appeared.
        self._early_until: float | None = None
        self.just_started = True

    def _new_prompt(self) -> PromptSession[None]:
        depth = None if self.paint.colours else ColorDepth.DEPTH_1_BIT
        return PromptSession(
            lambda: self._message,
            multiline=True,
            is_password=Condition(lambda: self.state.hiding()),
            history=self._history,
            auto_suggest=ConditionalAutoSuggest(
                AutoSuggestFromHistory(), Condition(lambda: self.suggesting)
            ),
            completer=_Completer(self),
            complete_while_typing=Condition(self._completes),
            reserve_space_for_menu=MENU_ROWS,
            key_bindings=bindings(self),
            prompt_continuation="  ",
            enable_suspend=True,
            enable_open_in_editor=True,
            erase_when_done=True,
            style=STYLE,
            color_depth=depth,
            include_default_pygments_style=False,
            output=self._output,
        )

    @property
    def animated(self) -> bool:
        return self.paint.colours and bool(self.paint.skin.spinner.frames)

    @property
    def width(self) -> int:
        return self._output.get_size().columns

    @property
    def draft(self) -> str:
        return self._prompt.default_buffer.text

    @draft.setter
    def draft(self, text: str) -> None:
        self._prompt.default_buffer.document = Document(text, len(text))

    def _completes(self) -> bool:
        """Whether a menu opens automatically: for commands and `@` references."""
        typed = self._prompt.default_buffer.document.text_before_cursor
        is_open = typed.startswith("/") or typed.rpartition(" ")[2].startswith("@")
        return is_open and not self.state.asking()

    @property
    def suggesting(self) -> bool:
        """Whether history suggestions may appear after the cursor. They need colours to differ
        from typed text."""
        return self.paint.colours and not self.state.asking() and not self.draft.startswith("/")

    def add_to_draft(self, text: str) -> None:
        self._put_aside = (self._put_aside or "") + text

    def send(self) -> None:
        buffer = self._prompt.default_buffer
        typed = buffer.text
        text = self.pastes.expand(typed)
        buffer.reset()
        # The draft is sent: a question that opens now does not interrupt typing.
        self._last_key_at = float("-inf")
        if self.state.submit(text) and typed not in self._history.get_strings()[-1:]:
            self._history.append_string(typed)

    def show(self, text: str) -> None:
        self._unshown.append(text)
        if not self._app.is_running:
            self._print()
        elif len(self._unshown) == 1:
            # A burst of output is drawn once.
            asyncio.get_running_loop().call_soon(self._print)

    def refresh(self) -> None:
        self._app.invalidate()

    def ready(self) -> None:
        self.refresh()

    def fold(self, text: str) -> str:
        return self.pastes.fold_known(text)

    def attach(self, path: str) -> None:
        chip = self.pastes.picture(path)
        self.draft = f"{self.draft.rstrip()} {chip} ".lstrip()

    def pictures(self, text: str) -> tuple[str, ...]:
        return self.pastes.pictures(text)

    def copy(self, text: str) -> bool:
        # OSC 52 also works over a remote shell.
        body = base64.b64encode(text.encode("utf-8", "replace")).decode()
        self._output.write_raw(f"\x1b]52;c;{body}\x07")
        self._output.flush()
        return True

    def compose(self, draft: str) -> bool:
        if draft:
            self.draft = draft
        _ = self._app.create_background_task(edit(self._prompt.default_buffer))
        return True

    def clear(self) -> None:
        if self._app.is_running:
            self._print()
            self._app.renderer.clear()

    def ring(self) -> None:
        self._output.bell()
        self._output.flush()

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        if self._put_aside is None:
            self._put_aside = self.draft
            self.in_flow = self._clock() - self._last_key_at < FLOW_SECONDS
            self._prompt.default_buffer.reset()

    def question_closed(self) -> None:
        if self._put_aside is not None:
            self.draft, self._put_aside = self._put_aside, None
            # The last key was an answer, not typing.
            self._last_key_at = float("-inf")

    async def run(self) -> None:
        end_unterminated_pastes(self._app)
        with create_app_session(output=self._output), patch_stdout():
            try:
                await self._prompt.prompt_async(set_exception_handler=False)
            except (EOFError, KeyboardInterrupt):
                self.state.leave()
        self._print()

    def close(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._print()
            self._app.exit()

    def _print(self) -> None:
        if not self._unshown:
            return
        if self._app._running_in_terminal:
            # An editor owns the terminal; output waits until it closes.
            asyncio.get_running_loop().call_later(REDRAW_SECONDS, self._print)
            return
        rows = "\n".join(self._unshown).split("\n")
        self._unshown.clear()
        with self._output.together():
            if self._app.is_running:
                self._renderer.repeat_doubtful_rows()
            if not (self._app.is_running and self._renderer.complete_in_place(rows)):
                if self._app.is_running:
                    self._app.renderer.erase()
                self._output.write_raw("".join(f"{row}\r\n" for row in rows))
            # Does nothing unless the application runs.
            self._app._redraw()

    def _compose(self) -> None:
        size = self._output.get_size()
        # A low window needs its rows for other things.
        self._prompt.reserve_space_for_menu = min(MENU_ROWS, max(4, size.rows // 2 - 2))
        rows = self.state.rows(size.columns - 1, max(1, size.rows - 3))
        self._message = ANSI("\n".join((*rows, f"{self.state.symbol()} ")))

    def _note_drawn(self, *, again: bool = False) -> None:
        if self._early_until is None or again:
            self._early_until = self._clock() + EARLY_SECONDS

    def _note_key(self) -> None:
        now = self._clock()
        self.in_flow = self.in_flow and now - self._last_key_at < FLOW_SECONDS
        self._last_key_at = now
        self.just_started = self.just_started and (
            self._early_until is None or now < self._early_until
        )


class _Completer(Completer):
    def __init__(self, screen: PromptScreen) -> None:
        self._screen = screen

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for found in await self._screen.state.complete(document.text_before_cursor):
            yield Completion(
                found.text, start_position=-found.replaces, display_meta=found.description or None
            )
