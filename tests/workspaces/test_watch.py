from __future__ import annotations

from hermes.workspaces.watch import APART_SECONDS, OVERALL_CAP, OverallLimit, Watch


def test_only_whole_lines_with_a_word_are_hits() -> None:
    watch = Watch(("ERROR", "ready"), OverallLimit())
    assert watch.hits("fine\nan ERR") == []
    assert watch.hits("OR\nnow rea") == ["an ERROR"]
    assert watch.last_hits() == []
    assert watch.hits("is ready") == []
    assert watch.last_hits() == ["is ready"]


def test_notices_are_apart() -> None:
    watch = Watch(("x",), OverallLimit())
    assert watch.admits(0)
    assert not watch.admits(1)
    assert not watch.admits(APART_SECONDS - 0.1)
    assert watch.admits(APART_SECONDS)


def test_three_noisy_windows_in_a_row_end_the_watch() -> None:
    watch = Watch(("x",), OverallLimit())
    for window in range(3):
        assert watch.admits(window * APART_SECONDS)
        assert not watch.admits(window * APART_SECONDS + 1)
        assert not watch.disabled
    assert not watch.admits(3 * APART_SECONDS)
    assert watch.disabled
    assert watch.hits("x\n") == []


def test_a_quiet_window_forgives() -> None:
    watch = Watch(("x",), OverallLimit())
    for window in range(9):
        assert watch.admits(window * APART_SECONDS)
        if window % 3:
            watch.admits(window * APART_SECONDS + 1)
    assert not watch.disabled


def test_all_processes_together_have_a_cap() -> None:
    overall = OverallLimit()
    watches = [Watch(("x",), overall) for _ in range(OVERALL_CAP + 1)]
    assert [watch.admits(0) for watch in watches] == [True] * OVERALL_CAP + [False]
    assert watches[-1].admits(APART_SECONDS)


def test_nothing_to_watch_is_no_watch() -> None:
    assert Watch((), OverallLimit()).disabled
