"""One server for the tests of a module that do not stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.surfaces.api.serving import Serving, serving

Rule = Callable[[Request], Step]


class Model:
    """What the model of a module does; tests set `rule`."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.rule: Rule = lambda request: says("hello")


@pytest.fixture(scope="module")
def shared_model() -> Iterator[Model]:
    held: list[Model] = []
    with ScriptedServer.in_thread(lambda request: held[0].rule(request), strict=False) as server:
        held.append(Model(server))
        yield held[0]


@pytest.fixture
def model(shared_model: Model) -> Model:
    shared_model.rule = lambda request: says("hello")
    return shared_model


@pytest.fixture(scope="module")
def api(shared_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder: Path = tmp_path_factory.mktemp("api")
    with serving(folder, shared_model.server.url) as server:
        yield server
