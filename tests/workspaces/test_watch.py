from __future__ import annotations

from hermes.workspaces.notices import APART_SECONDS, OVERALL_CAP, NoticeLimit, OutputWatch


def test_only_whole_lines_with_a_word_are_hits() -> None:
    watch = OutputWatch(("ERROR", "ready"), NoticeLimit())
    assert watch.find_hits("fine\nan ERR") == []
    assert watch.find_hits("OR\nnow rea") == ["an ERROR"]
    assert watch.find_last_hits() == []
    assert watch.find_hits("is ready") == []
    assert watch.find_last_hits() == ["is ready"]


def test_notices_are_apart() -> None:
    watch = OutputWatch(("x",), NoticeLimit())
    assert watch.may_notify(0)
    assert not watch.may_notify(1)
    assert not watch.may_notify(APART_SECONDS - 0.1)
    assert watch.may_notify(APART_SECONDS)


def test_three_noisy_windows_in_a_row_end_the_watch() -> None:
    watch = OutputWatch(("x",), NoticeLimit())
    for window in range(3):
        assert watch.may_notify(window * APART_SECONDS)
        assert not watch.may_notify(window * APART_SECONDS + 1)
        assert not watch.disabled
    assert not watch.may_notify(3 * APART_SECONDS)
    assert watch.disabled
    assert watch.find_hits("x\n") == []


def test_a_quiet_window_forgives() -> None:
    watch = OutputWatch(("x",), NoticeLimit())
    for window in range(9):
        assert watch.may_notify(window * APART_SECONDS)
        if window % 3:
            watch.may_notify(window * APART_SECONDS + 1)
    assert not watch.disabled


def test_all_processes_together_have_a_cap() -> None:
    overall = NoticeLimit()
    watches = [OutputWatch(("x",), overall) for _ in range(OVERALL_CAP + 1)]
    assert [watch.may_notify(0) for watch in watches] == [True] * OVERALL_CAP + [False]
    assert watches[-1].may_notify(APART_SECONDS)


def test_nothing_to_watch_is_no_watch() -> None:
    assert OutputWatch((), NoticeLimit()).disabled
