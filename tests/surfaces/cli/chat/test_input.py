"""What is typed: history, pastes, and the state that takes it before there is a session."""

from __future__ import annotations

from pathlib import Path

from hermes.config.home import Home
from hermes.surfaces.cli.chat.chat_state import ChatState, StopRequested, SubmittedLine
from hermes.surfaces.cli.chat.keys import Pastes
from hermes.surfaces.cli.chat.prompt import PrivateHistory
from tests.surfaces.cli.chat.recording_screen import RecordingScreen


def test_history_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    history = PrivateHistory(home)
    assert not home.root.exists()
    history.store_string("first")
    history.store_string("two\nlines\n+ plus")
    assert home.history.stat().st_mode & 0o777 == 0o600
    assert list(PrivateHistory(home).load_history_strings()) == ["two\nlines\n+ plus", "first"]


def test_a_home_that_cannot_be_written_costs_the_history_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = PrivateHistory(Home(tmp_path / "file" / "home"))
    history.store_string("lost")
    assert list(history.load_history_strings()) == []


def test_a_long_entry_is_folded_in_memory_and_whole_in_the_file(tmp_path: Path) -> None:
    home, pastes = Home(tmp_path / "home"), Pastes()
    long = "\n".join(f"line {n}" for n in range(30))
    PrivateHistory(home, pastes).store_string(f"{pastes.placeholder(long)} why?")
    assert "+line 29 why?" in home.history.read_text()
    later = Pastes()
    [entry] = PrivateHistory(home, later).load_history_strings()
    assert entry == "[Pasted text #1: 30 lines]"
    assert later.expand(entry) == f"{long} why?"


def test_only_a_real_image_is_attached_when_it_is_dropped(tmp_path: Path) -> None:
    real, fake = tmp_path / "real.png", tmp_path / "fake.png"
    real.write_bytes(b"\x89PNG\r\n\x1a\n")
    fake.write_text("no picture")
    pastes = Pastes()
    assert pastes.placeholder(str(real)) == "[Image #1: real.png]"
    assert pastes.placeholder(str(fake)) == str(fake)


def test_short_pastes_are_shown_and_long_ones_named() -> None:
    pastes = Pastes()
    assert pastes.placeholder("a\r\nb") == "a\nb"
    long = "\n".join("x" * 200)
    name = pastes.placeholder(long)
    assert name == "[Pasted text #1: 200 lines]"
    assert pastes.expand(f"Look: {name}!") == f"Look: {long}!"


def test_a_name_that_stands_for_nothing_stays() -> None:
    assert Pastes().expand("[Pasted text #3: 9 lines]") == "[Pasted text #3: 9 lines]"


async def test_lines_typed_early_are_queued() -> None:
    state = ChatState(lambda: 0.0)
    assert [state.submit(text) for text in ("first", "  ", "second")] == [True, False, True]
    assert state.rows(80, 24) == ["starting… 2 lines queued"]
    assert [state.inputs.get_nowait() for _ in range(2)] == [
        SubmittedLine(text="first", early=True),
        SubmittedLine(text="second", early=True),
    ]


async def test_ctrl_c_clears_then_stops_then_leaves() -> None:
    now = [100.0]
    state, screen = ChatState(lambda: now[0]), RecordingScreen()
    state.screen = screen
    screen.draft = "half a word"
    state.interrupt()
    assert (screen.draft, state.inputs.empty(), screen.closed) == ("", True, False)
    state.interrupt()
    assert state.inputs.get_nowait() == StopRequested()
    now[0] += 3
    state.interrupt()
    assert not screen.closed
    now[0] += 1
    state.interrupt()
    assert screen.closed and state.left.is_set()


async def test_who_goes_on_talking_does_not_leave_with_the_next_ctrl_c() -> None:
    state, screen = ChatState(lambda: 100.0), RecordingScreen()
    state.screen = screen
    state.interrupt()
    state.submit("something else")
    state.interrupt()
    assert not screen.closed
    state.interrupt()
    assert screen.closed
