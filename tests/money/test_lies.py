"""Caps hold when a provider reports nonsense, and when the settings file is damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.errors import InvalidConfig
from hermes.core.events import CallSettled
from hermes.core.prompt import Notice
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.journal.listing import Spending
from tests.money.liar import LyingServer, write_settings
from tests.money.worker import QuickClock, newest_end

CAP = 0.25
TURNS = 14

LIES = {
    "zero": '{"prompt_tokens": 0, "completion_tokens": 0}',
    "one": '{"prompt_tokens": 1, "completion_tokens": 1}',
    "half": '{"prompt_tokens": 1200, "completion_tokens": 400}',
    "negative": '{"prompt_tokens": -5000, "completion_tokens": -5000}',
    "text": '{"prompt_tokens": "many", "completion_tokens": "few"}',
    "numbers as text": '{"prompt_tokens": "3", "completion_tokens": "4"}',
    "booleans": '{"prompt_tokens": true, "completion_tokens": false}',
    "null": '{"prompt_tokens": null, "completion_tokens": null}',
    "lists": '{"prompt_tokens": [9], "completion_tokens": {"n": 9}}',
    "not a number": '{"prompt_tokens": NaN, "completion_tokens": NaN}',
    "infinite": '{"prompt_tokens": Infinity, "completion_tokens": -Infinity}',
    "overflowing": '{"prompt_tokens": 1e400, "completion_tokens": 1e400}',
    "absurd": '{"prompt_tokens": 900000000000, "completion_tokens": 900000000000}',
    "output only": '{"completion_tokens": 0}',
    "all cached": '{"prompt_tokens": 5, "completion_tokens": 900, '
    '"prompt_tokens_details": {"cached_tokens": 4000000}}',
    "free of charge": '{"prompt_tokens": 3000, "completion_tokens": 1100, "cost": 0}',
    "negative cost": '{"prompt_tokens": 3000, "completion_tokens": 1100, "cost": -60}',
    "cost is not a number": '{"prompt_tokens": 0, "completion_tokens": 0, "cost": NaN}',
    "infinite cost": '{"prompt_tokens": 3000, "completion_tokens": 1100, "cost": Infinity}',
    "cost beyond all numbers": '{"prompt_tokens": 3000, "completion_tokens": 1100, "cost": 1e308}',
    "nothing": "",
    "a word": '"free"',
    "an empty object": "{}",
}


def open_app(home: Path) -> App:
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return App(load(Home(home), env=env), env=env, world=World(clock=QuickClock()))


class Spent:
    """What a session did until a cap stopped it."""

    def __init__(self) -> None:
        self.end = ""
        self.lines: tuple[Spending, ...] = ()
        self.settled: list[CallSettled] = []
        self.notices: list[str] = []

    @property
    def booked(self) -> float:
        return sum((line.usage.cost or 0) + (line.assumed.cost or 0) for line in self.lines)


async def spend(home: Path, turns: int = TURNS) -> Spent:
    spent = Spent()
    async with open_app(home) as app:
        session = await app.open(SessionRequest(source="test", attended=False, session_id="s"))
        events = session.subscribe()
        for turn in range(turns):
            await session.send(Say(text=f"Tell me about part {turn}."))
            await session.wait_until_idle()
            spent.end = await newest_end(app, "s")
            if spent.end == "paused":
                break
        events.close()
        async for record in events:
            if isinstance(record.event, Notice):
                spent.notices.append(record.event.text)
        spent.lines = await app.archive.spending()
        records = await app.journal.read("s")
        spent.settled = [r.event for r in records if isinstance(r.event, CallSettled)]
    return spent


@pytest.mark.parametrize("lie", LIES)
async def test_no_report_gets_more_than_the_cap_pays_for(tmp_path: Path, lie: str) -> None:
    async with LyingServer(LIES[lie]) as server:
        write_settings(tmp_path / "home", server, f"{{day: {CAP}}}")
        spent = await spend(tmp_path / "home")
    assert server.requests >= 2
    assert spent.end == "paused"
    assert server.real_cost <= CAP + server.worst_call
    assert spent.booked >= server.real_cost
    assert not any(settled.certain and settled.usage.output for settled in spent.settled)


async def test_a_corrected_report_is_announced_and_listed(tmp_path: Path) -> None:
    async with LyingServer(LIES["zero"]) as server:
        write_settings(tmp_path / "home", server, "{day: 5}")
        spent = await spend(tmp_path / "home", turns=2)
    (notice,) = [text for text in spent.notices if "cannot be right" in text]
    assert notice.startswith("acme reported 0 input tokens for ")
    assert sum(line.corrected_calls for line in spent.lines) == 2
    assert sum(line.corrected_cost for line in spent.lines) == pytest.approx(spent.booked)


async def test_an_honest_report_is_booked_as_it_is(tmp_path: Path) -> None:
    async with LyingServer('{"prompt_tokens": 3200, "completion_tokens": 1000}') as server:
        write_settings(tmp_path / "home", server, "{day: 5}")
        spent = await spend(tmp_path / "home", turns=2)
    assert [(each.certain, each.usage.prompt) for each in spent.settled] == [(True, 3200)] * 2
    assert spent.notices == []


def rewrite(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "emptied": rewrite(""),
    "deleted": Path.unlink,
    "a folder": make_folder,
    "broken": rewrite("budget: [\n"),
    "not text": lambda file: file.write_bytes(b"\xff\xfe\x00budget"),
    "cut in the middle": lambda file: file.write_text(file.read_text()[:11]),
    "without a budget": rewrite("model: {default: priced, provider: acme}\n"),
    "a word": rewrite("budget: {day: five}\n"),
    "not a number": rewrite("budget: {day: .nan}\n"),
    "infinite": rewrite("budget: {day: .inf}\n"),
    "negative": rewrite("budget: {day: -1}\n"),
    "an unknown key": rewrite("budget: {daily: 1000}\n"),
}


@pytest.mark.parametrize("how", DAMAGE)
async def test_damaged_settings_never_lift_a_cap(tmp_path: Path, how: str) -> None:
    file = tmp_path / "home" / "config.yaml"

    def damage(request: int) -> None:
        if request == 2:
            DAMAGE[how](file)

    usage = '{"prompt_tokens": 3200, "completion_tokens": 1100}'
    async with LyingServer(usage, before_answer=damage) as server:
        write_settings(tmp_path / "home", server, "{day: 0.15}")
        spent = await spend(tmp_path / "home")
    assert spent.end == "paused"
    assert server.requests > 2
    assert server.real_cost <= 0.15 + server.worst_call


async def test_a_changed_cap_counts_at_once_and_null_lifts_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with LyingServer('{"prompt_tokens": 3200, "completion_tokens": 1100}') as server:
        write_settings(home, server, "{day: 5}")

        def change(request: int) -> None:
            write_settings(home, server, "{day: null}" if request == 2 else "{day: 0.0001}")

        server.before_answer = change
        spent = await spend(home)
    assert (spent.end, server.requests) == ("paused", 1)


INVALID = (
    "five",
    "-1",
    ".nan",
    ".inf",
    "true",
    "[1]",
    "1e300",
    "''",
    "{day: five}",
    "{day: -0.01}",
    "{day: .nan}",
    "{day: -.inf}",
    "{day: {usd: [5]}}",
    "{day: {tokens: 0}}",
    "{day: {tokens: 1.5}}",
    "{day: {euro: 5}}",
    "{daily: 5}",
    "{day: 5, weekly: 9}",
    "{day: 5 dollars}",
    '{day: "${NO_SUCH_VARIABLE}"}',
)


@pytest.mark.parametrize("budget", INVALID)
async def test_an_invalid_cap_is_an_error_before_the_first_call(
    tmp_path: Path, budget: str
) -> None:
    home = tmp_path / "home"
    async with LyingServer() as server:
        write_settings(home, server, budget)
        for _ in range(2):  # the second time, the settings come from the cached copy
            with pytest.raises(InvalidConfig, match="budget"):
                await spend(home, turns=1)
    assert server.requests == 0


async def test_a_misspelt_section_is_an_error_before_the_first_call(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with LyingServer() as server:
        write_settings(home, server, "{day: 1}")
        config = home / "config.yaml"
        config.write_text(config.read_text().replace("budget:", "budgets:"))
        with pytest.raises(InvalidConfig, match="budgets"):
            await spend(home, turns=1)
    assert server.requests == 0
