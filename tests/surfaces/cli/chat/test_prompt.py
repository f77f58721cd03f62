"""The input line itself: keys in, and where they go."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes.commands.registry import Suggestion
from hermes.surfaces.cli.chat.chat_state import ChatState
from hermes.surfaces.cli.chat.prompt import PromptScreen
from hermes.surfaces.cli.chat.screen import Paint

PASTE = "\x1b[200~{}\x1b[201~"


class RecordingState(ChatState):
    """Records what the screen reports."""

    def __init__(self) -> None:
        super().__init__(time.monotonic)
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.question_open = False
        self.drawn = asyncio.Event()
        self.tail: list[str] = []

    def rows(self, width: int, height: int) -> list[str]:
        self.drawn.set()
        return self.tail

    def symbol(self) -> str:
        return "❯"

    def hiding(self) -> bool:
        return False

    def asking(self) -> bool:
        return self.question_open

    def waiting(self) -> bool:
        return False

    def take_back(self, *, edit: bool) -> None:
        self.heard.put_nowait(f"take back, edit={edit}")

    def submit(self, text: str) -> bool:
        self.heard.put_nowait(f"said {text}")
        return True

    def key(self, name: str) -> None:
        self.heard.put_nowait(f"key {name}")

    def interrupt(self) -> None:
        self.heard.put_nowait("interrupt")

    def leave(self) -> None:
        self.heard.put_nowait("leave")

    async def complete(self, line: str) -> Sequence[Suggestion]:
        names = ("model", "memory", "new")
        fitting = [name for name in names if line.startswith("/") and name.startswith(line[1:])]
        return [Suggestion(text=name, replaces=len(line) - 1) for name in fitting]


class Window(StringIO):
    """All that was ever written to a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.read_upto = 0

    def news(self) -> str:
        text = self.getvalue()[self.read_upto :]
        self.read_upto += len(text)
        return text


class PromptDriver:
    """A prompt with a keyboard and a clock of its own."""

    def __init__(self, keyboard: PipeInput) -> None:
        self.now = 100.0
        self.state = RecordingState()
        self._keyboard = keyboard
        self.window = Window()
        self.screen = PromptScreen(
            self.window,
            term="xterm",
            lag_seconds=None,
            paint=Paint(colours=False),
            state=self.state,
            history=InMemoryHistory(),
            clock=lambda: self.now,
        )

    async def press(self, keys: str, *, after: float = 5.0) -> None:
        """Keys, some time after those before them; they have been taken when this returns."""
        self.now += after
        self._keyboard.send_text(keys)
        while self._untaken():  # noqa: ASYNC110 - what reads the keys sets no event
            await asyncio.sleep(0)

    def _untaken(self) -> bool:
        return bool(select.select([self._keyboard.fileno()], [], [], 0)[0])

    @property
    def has_menu(self) -> bool:
        return self.screen._prompt.default_buffer.complete_state is not None

    async def hears(self) -> str:
        return await asyncio.wait_for(self.state.heard.get(), 60)


@asynccontextmanager
async def prompt() -> AsyncIterator[PromptDriver]:
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
        made = PromptDriver(keyboard)
        running = asyncio.create_task(made.screen.run())
        await made.state.drawn.wait()
        yield made
        made.screen.close()
        await running


async def test_enter_sends_and_empties_the_line() -> None:
    async with prompt() as here:
        await here.press("hello\r")
        assert await here.hears() == "said hello"
        assert here.screen.draft == ""


async def test_a_paste_never_sends() -> None:
    async with prompt() as here:
        await here.press(PASTE.format("one\rtwo\r"))
        assert here.state.heard.empty()
        assert here.screen.draft == "one\ntwo\n"
        await here.press("\r")
        assert await here.hears() == "said one\ntwo\n"


async def test_a_paste_whose_end_got_lost_does_not_swallow_what_is_typed() -> None:
    async with prompt() as here:
        await here.press("\x1b[200~one\rtwo")
        for _ in range(6_000):
            if here.screen.draft:
                break
            await asyncio.sleep(0.01)
        assert here.screen.draft == "one\ntwo"
        await here.press("!\r")
        assert await here.hears() == "said one\ntwo!"


async def test_a_long_paste_is_sent_in_full() -> None:
    async with prompt() as here:
        await here.press(PASTE.format("\r".join("abcdefgh")))
        assert here.screen.draft == "[Pasted text #1: 8 lines]"
        await here.press("!\r")
        assert await here.hears() == "said " + "\n".join("abcdefgh") + "!"


async def test_what_is_typed_when_a_question_opens_goes_on_in_the_draft() -> None:
    async with prompt() as here:
        await here.press("there are ")
        here.now += 0.1
        here.state.question_open = True
        here.screen.question_opened(())
        await here.press("1", after=0.1)
        await here.press("2 things", after=0.3)
        assert here.state.heard.empty()
        # A pause: from here on, keys are meant for the question.
        await here.press("2", after=1.0)
        assert await here.hears() == "key 2"
        here.state.question_open = False
        here.screen.question_closed()
        assert here.screen.draft == "there are 12 things"


async def test_keys_answer_a_question_at_once_when_nobody_was_typing() -> None:
    async with prompt() as here:
        await here.press("go\r")
        assert await here.hears() == "said go"
        here.state.question_open = True
        here.screen.question_opened(())
        await here.press("1", after=0.1)
        assert await here.hears() == "key 1"
        await here.press("\x1b[C", after=0.1)
        assert await here.hears() == "key right"
        await here.press("\x1b", after=0.1)
        assert await here.hears() == "key escape"


async def test_a_number_inside_an_answer_is_part_of_it() -> None:
    async with prompt() as here:
        here.state.question_open = True
        here.screen.question_opened(())
        await here.press("a 2\r")
        assert await here.hears() == "said a 2"


async def test_the_ways_to_stop_and_to_leave() -> None:
    async with prompt() as here:
        await here.press("\x03")
        assert await here.hears() == "interrupt"
        await here.press("x\x04")
        assert here.state.heard.empty()
        await here.press("\x7f\x04")
        assert await here.hears() == "leave"


async def test_tab_takes_the_only_completion_and_goes_on_behind_it() -> None:
    async with prompt() as here:
        for typed, taken in (("/mo", "/model "), ("/m", "/model")):
            await here.press(typed)
            async with asyncio.timeout(60):
                while not here.has_menu:  # noqa: ASYNC110 - a menu sets no event
                    await asyncio.sleep(0.005)
            await here.press("\t")
            assert here.screen.draft == taken
            here.screen.draft = ""


async def streamed(here: PromptDriver, drawn: str, finished: str) -> str:
    """What is written when a row that is drawn so is finished like that."""
    here.state.tail = [drawn, ""]
    here.screen._app._redraw()
    here.window.news()
    here.state.tail = [""]
    here.screen.show(finished)
    here.screen._print()
    return here.window.news()


def resize(here: PromptDriver, columns: int) -> None:
    """The terminal tells of its new size."""
    here.screen._output._last_size = Size(rows=24, columns=columns)
    here.screen._app._on_resize()


async def test_of_a_row_that_stands_there_only_the_rest_is_written() -> None:
    async with prompt() as here:
        written = await streamed(here, "one two", "one two three")
        assert " three" in written
        assert "two" not in written


async def test_a_row_finished_while_the_window_got_narrower_is_written_again_and_once() -> None:
    async with prompt() as here:
        await streamed(here, "one two", "one two three")
        here.now += 0.05
        resize(here, 10)
        assert here.window.news().count("one two three\r\n") == 1
        resize(here, 5)
        assert "one" not in here.window.news()


@pytest.mark.parametrize("columns", [13, 40, 120])
async def test_a_row_that_fits_all_the_same_stays_as_it_is(columns: int) -> None:
    async with prompt() as here:
        await streamed(here, "one two", "one two three")
        resize(here, columns)
        resize(here, 5)
        assert "one" not in here.window.news()


async def test_what_is_finished_next_comes_after_what_is_written_again() -> None:
    async with prompt() as here:
        await streamed(here, "one two", "one two three")
        here.screen._output._last_size = Size(rows=24, columns=10)
        here.screen.show("four")
        here.screen._print()
        before, again, after = here.window.news().partition("one two three\r\n")
        assert again
        assert "four" not in before
        assert "four\r\n" in after


async def test_a_row_that_was_finished_long_before_stays_as_it_is() -> None:
    async with prompt() as here:
        await streamed(here, "one two", "one two three")
        here.now += 1.0
        resize(here, 10)
        assert "one" not in here.window.news()
