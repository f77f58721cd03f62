"""The scripts of shipped skills that reckon: money, days and times."""

from __future__ import annotations

import json
import runpy
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.skills.test_bundled_scripts import SCRIPTS, run, write

LOANS = runpy.run_path(str(SCRIPTS["loans.py"]))
CARDS = runpy.run_path(str(SCRIPTS["cards.py"]))
SUBTITLES = runpy.run_path(str(SCRIPTS["subtitles.py"]))
LINES = runpy.run_path(str(SCRIPTS["group_lines.py"]))
TODAY = date(2025, 3, 31)
LIFETIME = 36_500


# budget-from-statements


def test_sums_by_month_add_up_to_what_is_left(tmp_path: Path) -> None:
    rows = ("2025-01-01,Pay,0.30", "2025-01-02,Shop,-0.10", "2025-02-02,Shop,-0.10")
    statement = write(tmp_path / "s.csv", "d,t,a\n" + "\n".join(rows) + "\n")
    rules = write(tmp_path / "r.csv", "pattern,category\nshop,food\npay,income\n")
    done = run("bookings.py", statement, rules, "--date", "d", "--text", "t", "--amount", "a")
    table = [line.split() for line in done.out.splitlines()]
    assert table == [
        ["2025-01", "2025-02", "mean"],
        ["food", "-0.10", "-0.10", "-0.10"],
        ["income", "0.30", "0.00", "0.15"],
        ["=", "left", "0.20", "-0.10", "0.05"],
    ]


def test_what_cannot_be_read_is_told_with_its_row(tmp_path: Path) -> None:
    rules = write(tmp_path / "r.csv", "pattern,category\n")
    for row, words in (
        ("2025-01-01,x,1,5", "is not an amount"),
        ("1.1.25,x,1", "is not a date like"),
    ):
        cells = row.split(",", 2)
        text = f'date,text,amount\n{cells[0]},{cells[1]},"{cells[2]}"\n'
        done = run("bookings.py", write(tmp_path / "s.csv", text), rules)
        assert (done.code, "Row 2" in done.err, words in done.err) == (1, True, True)


def test_prices_that_differ_much_are_no_contract(tmp_path: Path) -> None:
    rows = [
        f"2025-0{n}-05,{who},-{amount}"
        for n in (1, 2, 3)
        for who, amount in (("Gym", 20 + n), ("Market", 20 * n))
    ]
    statement = write(tmp_path / "s.csv", "date,text,amount\n" + "\n".join(rows) + "\n")
    done = run("bookings.py", statement, write(tmp_path / "r.csv", "pattern,category\n"))
    monthly = done.out.partition("Every month:")[2].partition("Unsorted")[0]
    assert monthly.split() == ["-23.00", "gym", "(3", "months)"]


# loan-cost


def test_a_loan_of_the_textbook() -> None:
    loan = LOANS["Loan"]("a", 100_000, 6.0, 360)
    assert loan.payment == pytest.approx(599.55, abs=0.005)
    assert LOANS["effective"](loan, LOANS["course"](loan, 0).payments) == pytest.approx(
        6.1678, abs=0.0001
    )


@given(
    st.floats(100, 1e6),
    st.floats(0, 30),
    st.integers(1, 480),
    st.floats(0, 0.2),
    st.floats(0, 500),
)
def test_payments_are_worth_what_was_handed_out(
    amount: float, rate: float, months: int, fee: float, extra: float
) -> None:
    loan = LOANS["Loan"]("a", amount, rate, months, amount * fee)
    paid = LOANS["course"](loan, extra).payments
    assert len(paid) <= months + 1
    monthly = (1 + LOANS["effective"](loan, paid) / 100) ** (1 / 12)
    worth = sum(each / monthly**number for number, each in enumerate(paid, 1))
    assert worth == pytest.approx(amount - loan.fee, rel=1e-3)


def test_offers_are_ordered_by_what_they_cost() -> None:
    out = run("loans.py", "Dear:1000:9:12", "Free:1000:0:10", "Fee:1000:0:10:90").out.splitlines()
    assert [line.split()[0] for line in out[1:]] == ["Free", "Dear", "Fee"]
    assert out[1].split() == ["Free", "100.00", "10", "1000.00", "0.00", "0.00%"]
    assert "is not NAME" in run("loans.py", "Bank:10").err
    assert "cannot be repaid" in run("loans.py", "Bank:10:1:0").err


# spaced-repetition


def deck(tmp_path: Path, *words: str) -> str:
    done = run("cards.py", tmp_path / "d.json", *words, "--today", TODAY.isoformat())
    assert done.code == 0, done.err
    return done.out.strip()


def test_cards_are_added_once_and_come_again(tmp_path: Path) -> None:
    assert deck(tmp_path, "add", "house", "casa") == "added"
    assert deck(tmp_path, "add", "house", "hogar") == "was there already, or is empty"
    table = write(tmp_path / "w.csv", "front,back\nhouse,x\ndog,perro\n,\n")
    assert deck(tmp_path, "import", str(table)) == "1 added, 2 were there or empty"
    assert deck(tmp_path, "due") == "1\thouse\tcasa\n2\tdog\tperro"
    assert deck(tmp_path, "answer", "1", "good") == "again on 2025-04-01"
    assert deck(tmp_path, "answer", "2", "again") == "again on 2025-03-31"
    assert deck(tmp_path, "due") == "2\tdog\tperro"
    assert deck(tmp_path, "stats").startswith("2 cards, 1 due, 2 within a week, 0 new")
    assert len(json.loads((tmp_path / "d.json").read_text())) == 2
    assert run("cards.py", tmp_path / "d.json", "answer", "9", "good").code == 1
    assert run("cards.py", tmp_path / "d.json", "answer", "1", "maybe").code == 2


@given(st.lists(st.sampled_from(["again", "hard", "good", "easy"]), max_size=30))
@example(["easy"] * 30)
def test_gaps_grow_while_it_is_known_and_end_when_it_is_not(grades: list[str]) -> None:
    cards: list[dict[str, object]] = []
    CARDS["add"](cards, "a", "b", TODAY)
    (card,) = cards
    days = 0
    for grade in grades:
        CARDS["answer"](card, grade, TODAY)
        before, days = days, int(str(card["days"]))
        assert days == 0 if grade == "again" else before < days or days == LIFETIME
        assert float(str(card["ease"])) >= 1.3
    assert (card["seen"], card["failed"]) == (len(grades), grades.count("again"))


# fix-subtitles

SRT = "1\r\n00:00:01,000 --> 00:00:03,000\r\nÄ line\r\n\r\n2\r\n0:00:05.5 --> 0:00:07.25\r\nTwo\r\n"


@given(st.integers(0, 360_000_000))
def test_a_time_is_read_as_it_is_written(thousandths: int) -> None:
    assert SUBTITLES["moment"](SUBTITLES["stamp"](thousandths)) == thousandths


def test_times_move_and_what_is_before_the_film_is_dropped(tmp_path: Path) -> None:
    source = tmp_path / "a.srt"
    source.write_bytes(SRT.encode("cp1252"))
    target = tmp_path / "b.srt"
    assert run("subtitles.py", "shift", source, target, "-4").out == f"{target}: 1 subtitles\n"
    assert target.read_text() == "1\n00:00:01,500 --> 00:00:03,250\nTwo\n"


def test_two_points_stretch_all_times(tmp_path: Path) -> None:
    source = write(tmp_path / "a.srt", SRT.replace("\r", ""))
    target = tmp_path / "b.srt"
    points = ("00:00:01,000=00:00:02,000", "00:00:05,500=00:00:11,000")
    run("subtitles.py", "stretch", source, target, *points)
    assert "00:00:02,000 --> 00:00:06,000\nÄ line" in target.read_text(encoding="utf-8")
    assert "00:00:11,000 --> 00:00:14,500" in target.read_text(encoding="utf-8")
    assert run("subtitles.py", "stretch", source, target, points[0], points[0]).code == 1


def test_subtitles_that_nobody_can_read_are_named(tmp_path: Path) -> None:
    fast = "1\n00:00:01,000 --> 00:00:02,000\nFar too many words for one second\n"
    back = "\n2\n00:00:01,500 --> 00:00:01,000\n\n"
    done = run("subtitles.py", "check", write(tmp_path / "a.srt", fast + back))
    assert done.code == 1
    assert [line.split(":")[0] for line in done.out.splitlines()[:-1]] == ["1", "1", "2", "2"]


# log-triage


@given(st.text())
def test_the_shape_of_a_shape_is_itself(line: str) -> None:
    assert LINES["shape"](LINES["shape"](line)) == LINES["shape"](line)
