"""Every service that a tool can ask for is registered under the class that it is asked by."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.app.tool_services import tool_services
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.events import SessionOpened
from hermes.core.session_deps import ServiceRegistry
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.context.ground import say, stage
from tests.context.test_tool_search import many


async def test_every_path_names_a_class(tmp_path: Path) -> None:
    async with App(load(Home(tmp_path), env={}), env={}, world=World()) as app:
        opened = SessionOpened(source="cli", cwd=str(tmp_path), model="m", provider="p", system="")
        for path in tool_services(app, "s", opened, ()).paths:
            module, _, name = path.partition(":")
            assert isinstance(getattr(importlib.import_module(module), name), type), path


def test_a_service_of_another_class_is_refused() -> None:
    registry = ServiceRegistry(lambda: {"pathlib:Path": lambda: "text"})
    with pytest.raises(TypeError, match="Expected Path"):
        registry.create(Path)


def test_a_class_without_a_factory_is_called() -> None:
    assert ServiceRegistry().create(list) == []


async def test_the_tool_search_of_a_client_finds_only_tools_of_its_surface(tmp_path: Path) -> None:
    def model(request: Request) -> Step:
        search = calls("tool_search", query="deployment terminal command")
        return says("Done.") if request.results else search

    toolsets = {"api": ["file"]}
    async with stage(tmp_path, model, window=128_000, platform_toolsets=toolsets) as ground:
        async with ground.app() as app:
            app.tools.add(many())
            cwd = str(ground.project)
            request = SessionRequest(source="api:phone", platform="api", attended=False, cwd=cwd)
            await say(await app.open(request), "Which tools run commands?")
        found = ground.chats[-1].results[0].text
    assert "deployment_" in found
    assert "terminal:" not in found
