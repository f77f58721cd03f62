"""Forty secrets, twenty ways out: none is found in any request, file or output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.secrecy.canaries import CANARIES
from tests.secrecy.routes import APART, TOGETHER, Route
from tests.secrecy.stage import Stage


@pytest.mark.parametrize("route", TOGETHER, ids=lambda route: route.__name__)
def test_no_secret_gets_out_by(route: Route, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    route(stage)
    leaks = stage.leaks()
    assert leaks == {}, {k: len(v) for k, v in leaks.items()}


@pytest.mark.slow
@pytest.mark.parametrize("route", APART, ids=lambda route: route.__name__)
def test_no_single_secret_gets_out_by(route: Route, tmp_path: Path) -> None:
    for canaries in (CANARIES, *((canary,) for canary in CANARIES)):
        names = "+".join(canary.name for canary in canaries[:1])
        stage = Stage(tmp_path / f"{len(canaries)}-{names}", canaries)
        route(stage)
        assert stage.leaks() == {}, names
