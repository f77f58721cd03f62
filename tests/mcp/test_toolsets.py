"""Foreign servers among the toolsets of `hermes tools`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.extension_settings import McpServerSettings, McpToolSettings
from hermes.config.home import Home
from hermes.config.migrations import REMOVED
from hermes.config.settings import AgentSettings, Settings
from hermes.core.errors import NotFound, UsageError
from hermes.homes.toolsets import ToolsetState, changes, toolset_states


def with_server(**own: object) -> Settings:
    return Settings(mcp_servers={"files": McpServerSettings(command="x", **own)})  # type: ignore[arg-type]


def test_a_server_is_a_toolset(tmp_path: Path) -> None:
    def last(settings: Settings) -> ToolsetState:
        return toolset_states(settings, home=Home(tmp_path))[-1]

    some = McpToolSettings(include=("read",))
    assert last(with_server()) == ToolsetState(name="mcp-files", tools=(), enabled=True)
    assert last(with_server(tools=some)) == ToolsetState(name="mcp-files", tools=(), partly=True)
    assert last(with_server(enabled=False)) == ToolsetState(name="mcp-files", tools=())


def test_a_server_is_switched_and_so_is_one_of_its_tools() -> None:
    enabled = ("mcp_servers", "files", "enabled")
    assert changes(with_server(), ("mcp-files",), on=False) == {enabled: False}
    assert changes(with_server(enabled=False), ("mcp-files",), on=True) == {enabled: REMOVED}
    assert changes(with_server(), ("mcp-files",), on=True) == {}
    path = ("mcp_servers", "files", "tools")
    assert changes(with_server(), ("files:write",), on=False) == {(*path, "exclude"): ["write"]}
    without = with_server(tools=McpToolSettings(exclude=("write",)))
    assert changes(without, ("files:write",), on=True) == {(*path, "exclude"): REMOVED}
    only = with_server(tools=McpToolSettings(include=("read", "list")))
    assert changes(only, ("files:list",), on=False) == {(*path, "include"): ["read"]}


def test_a_server_that_was_off_as_a_toolset_is_on_again() -> None:
    off = Settings(
        mcp_servers={"files": McpServerSettings(command="x")},
        agent=AgentSettings(disabled_toolsets=("mcp-files",)),
    )
    assert changes(off, ("mcp-files",), on=True) == {("agent", "disabled_toolsets"): []}


def test_what_cannot_be_switched_is_said() -> None:
    only = with_server(tools=McpToolSettings(include=("read",)))
    with pytest.raises(UsageError, match="last tool"):
        changes(only, ("files:read",), on=False)
    with pytest.raises(UsageError, match="all platforms"):
        changes(only, ("mcp-files",), on=False, platform="cli")
    with pytest.raises(NotFound, match="no toolset 'mcp-other'"):
        changes(only, ("mcp-other",), on=False)
