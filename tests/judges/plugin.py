"""The pytest plugin that judges every request of every test.

A request that the types of its vendor's own library do not accept fails the test that made it.
Tests that ask wrongly on purpose say so: `@pytest.mark.unjudged`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from hermes.testing.observers import observe_requests

# The libraries take seconds to load: only a run that asks a server pays for them.
if TYPE_CHECKING:
    from hermes.codec.values import JsonObject
    from hermes.testing.request import Request
    from hermes.testing.wires.table import WireName
    from tests.judges.judge import Judge

_SHOWN = 5


class Court:
    """Hears requests as they come and judges them when the test is over."""

    def __init__(self) -> None:
        self._heard: list[tuple[int, WireName, JsonObject]] = []
        self._judge: Judge | None = None

    def hear(self, request: Request) -> None:
        # A body that is no JSON has no types; that is the server's own business.
        if request.wire is not None and request.body:
            self._heard.append((request.n, request.wire, request.body))

    def dismiss(self) -> None:
        self._heard.clear()

    def judge(self) -> None:
        heard, self._heard = self._heard, []
        if not heard:
            return
        if self._judge is None:
            from tests.judges.judge import Judge

            self._judge = Judge()
        found = [
            f"{wire} request {n}: {complaint}"
            for n, wire, body in heard
            for complaint in self._judge.complaints(wire, body)
        ]
        if found:
            more = len(found) - _SHOWN
            shown = found[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])
            pytest.fail("\n".join(shown), pytrace=False)


COURT = pytest.StashKey[Court]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "unjudged: sends requests that are wrong on purpose")
    config.stash[COURT] = court = Court()
    present = ExitStack()
    present.enter_context(observe_requests(court.hear))
    config.add_cleanup(present.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    done = yield
    _judge(item)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """What fixtures asked while they were taken down, and what a failed test left unheard."""
    done = yield
    _judge(item)
    return done


def _judge(item: pytest.Item) -> None:
    court = item.config.stash[COURT]
    if "unjudged" in item.keywords:
        court.dismiss()
    else:
        court.judge()
