"""Which cases are tried in which wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest

from hermes.testing.wires.table import WireName
from tests.faults.ground import WIRES

Case = TypeVar("Case")
Name = TypeVar("Name")


class Share:
    """All cases in each format take long: in a short run every case belongs to one format. The
    order changes from row to row, so that a format meets each column of a table too."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def __call__(self, cases: Mapping[Name, Case], wire: WireName) -> dict[Name, Case]:
        if self._whole:
            return dict(cases)
        turn, count = WIRES.index(wire), len(WIRES)
        return {
            name: case
            for at, (name, case) in enumerate(cases.items())
            if (at + at // count) % count == turn
        }


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Share:
    return Share(whole=request.config.getoption("--slow"))
