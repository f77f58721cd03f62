"""Forty secrets, twenty ways out: none is found in any request, file or output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.secrecy.canaries import CANARIES, Canary
from tests.secrecy.routes import ROUTES, Route
from tests.secrecy.stage import Stage


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_no_secret_gets_out_by(route: Route, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    route(stage)
    assert stage.leaks() == {}


@pytest.mark.slow
@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_no_single_secret_gets_out_by(route: Route, canary: Canary, tmp_path: Path) -> None:
    stage = Stage(tmp_path, (canary,))
    route(stage)
    assert stage.leaks() == {}
