"""The window changes while something is written: what is finished stays as it was printed."""

from __future__ import annotations

import re
import time
from functools import partial

from hermes.testing.faults import paced
from hermes.testing.steps import says
from tests.surfaces.cli.chat.conftest import NewPane, Talk
from tests.surfaces.cli.chat.held_clock import HeldClock
from tests.surfaces.cli.chat.pane import steady


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+\d+", text)


def has_bar(screen: str, *, wanted: bool) -> bool:
    """Wide windows show how full the context is, narrow ones do not."""
    return ("[░" in screen) == wanted


def test_nothing_that_is_finished_is_lost_when_the_window_changes(new_pane: NewPane) -> None:
    paragraphs = [" ".join(f"word{n}" for n in range(k, k + 20)) for k in range(0, 140, 20)]
    text, clock = "\n\n".join(paragraphs), HeldClock()
    pane = new_pane(paced(says(text), chunk=16, between_seconds=0.03), clock=clock)
    pane.hermes()
    clock.hold()
    pane.say("write")
    given = 0
    for number, columns in enumerate((60, 90, 40, 120, 44, 52)):
        # What has been sent is there before the window changes, and it has changed before more is.
        given += len(paragraphs[number]) // 16
        clock.let(len(paragraphs[number]) // 16)
        pane.wait_for(words_of(text[: 16 * given])[-2])
        pane.resize(columns, 20 + number)
        pane.wait(partial(has_bar, wanted=columns >= 90))
    clock.release()
    pane.wait_for("word139")
    pane.wait_idle()
    shown = iter(words_of(pane.everything().partition("❯ write")[2]))
    # While it is being drawn, remains of the live part may be left; what is finished stays.
    assert all(word in shown for word in words_of(text))


def test_a_window_that_changes_at_rest_leaves_nothing_behind(new_pane: NewPane) -> None:
    pane = new_pane(says("All is said."))
    pane.hermes()
    pane.say("speak")
    pane.wait_for("All is said.")
    pane.wait_idle()
    pane.type("a draft that is long enough to need a second row in a narrow window")
    pane.wait_for("narrow window")
    for columns in (50, 30, 100):
        time.sleep(0.6)  # tmux holds back changes that follow one another
        pane.resize(columns, 24)
        pane.wait_for("[░" if columns == 100 else "⚕ test │")
    shown = pane.everything().partition("❯ speak")[2]
    assert re.sub(r"\s+", " ", steady(shown)).startswith(" All is said. ⚕ test │ ")
    assert shown.count("a draft that is long") == 1


def test_a_narrow_window_wraps_nothing_that_is_drawn(new_pane: NewPane) -> None:
    pane = new_pane(columns=40, rows=20)
    pane.hermes()
    pane.say("help")
    pane.wait_for("❯")
    shown = pane.wait_idle()
    assert all(len(line) <= 40 for line in shown.split("\n"))
    assert "Traceback" not in shown


def test_long_output_goes_into_the_scroll_back_once(chat: Talk) -> None:
    lines = [f"line{n}" for n in range(3000)]
    pane = chat(paced(says("```\n" + "\n".join(lines) + "\n```"), chunk=4000))
    pane.say("much")
    pane.wait_for("line2999")
    pane.wait_idle()
    assert words_of(pane.everything().partition("❯ much")[2]) == lines


def test_wide_characters_stream_as_they_are(new_pane: NewPane) -> None:
    text = " ".join(f"漢字{n}かな🙂 word{n} é̈x" for n in range(60))
    pane = new_pane(paced(says(text), chunk=3, between_seconds=0.005), columns=47)
    pane.hermes()
    pane.say("write")
    pane.wait_for("word59")
    pane.wait_idle()
    rows = pane.everything().partition("❯ write\n\n")[2].partition("\n\n")[0].split("\n")
    # A break stands for a blank, or for nothing between wide characters.
    assert "".join("".join(rows).split()) == "".join(text.split())
