"""`hermes mcp`, with a real server that is started for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.mcp.conftest import LITTLE, free_port, until_open
from tests.mcp.oauth_stage import Authority, locked_server
from tests.surfaces.cli.program import Program

ADD = ("--command", sys.executable, "--args", "-S", "--args", "-E", "--args", str(LITTLE), "--yes")


@pytest.fixture
def added(program: Program) -> Program:
    done = program("mcp", "add", "little", *ADD, "--env", "LITTLE_API_KEY=sk-0123456789")
    assert done.code == 0, done.err
    assert "12 tools (little 1.0)" in done.out
    return program


def test_a_server_is_met_and_written_down_without_its_secrets(added: Program) -> None:
    settings = (added.home / "config.yaml").read_text()
    assert "${MCP_LITTLE_LITTLE_API_KEY}" in settings
    assert "sk-0123456789" not in settings
    assert "sk-0123456789" in (added.home / ".env").read_text()
    (row,) = added("mcp", "list", "--json").json
    assert (row["name"], row["tools"], row["enabled"]) == ("little", 16, True)


def test_a_server_is_tested(added: Program) -> None:
    trial = added("mcp", "test", "little", "--json").json
    assert (trial["tools"], trial["resources"], trial["prompts"]) == (12, 1, 1)
    assert trial["protocol"] == "2025-11-25"


def test_tools_are_chosen(added: Program) -> None:
    assert added("mcp", "configure", "little", "--include", "e*").code == 0
    rows = added("mcp", "tools", "little", "--json").json
    offered = [row["name"] for row in rows if row["offered"]]
    assert offered[:2] == ["mcp_little_echo", "mcp_little_environment"]
    assert "mcp_little_fail" not in offered
    assert added("mcp", "configure", "little", "--all").code == 0
    assert "include" not in (added.home / "config.yaml").read_text()


def test_a_server_is_switched_off_and_removed(added: Program) -> None:
    assert added("mcp", "disable", "little").code == 0
    assert added("mcp", "list", "--json").json[0]["enabled"] is False
    assert added("mcp", "enable", "little").code == 0
    assert added("mcp", "list", "--json").json[0]["enabled"] is True
    assert added("mcp", "remove", "little").code == 0
    assert added("mcp", "list", "--json").json == []
    assert not (added.home / "cache" / "mcp" / "little.json").exists()


def test_a_declined_server_is_not_started(program: Program) -> None:
    done = program.answer("n\n", "mcp", "add", "ghost", "--command", "no-such-program")
    assert (done.code, done.err.endswith("Nothing was changed.\n")) == (1, True)
    assert program("mcp", "list", "--json").json == []


def test_what_does_not_work_is_not_written_down(program: Program, tmp_path: Path) -> None:
    done = program("mcp", "add", "ghost", "--command", "no-such-program", "--yes")
    assert (done.code, program("mcp", "list", "--json").json) == (1, [])
    assert "command 'no-such-program' was not found" in done.err
    assert program("mcp", "add", "x/y", *ADD).code == 2
    assert program("mcp", "add", "both", *ADD, "--url", "http://127.0.0.1:9").code == 1
    assert program("mcp", "test", "nobody").code == 1
    assert program("mcp", "login", "nobody").code == 1
    assert program("mcp", "configure", "nobody").code == 2


def test_a_login_is_wanted_where_there_is_none(program: Program) -> None:
    program.write("mcp_servers: {far: {url: 'http://127.0.0.1:9/mcp', auth: oauth}}\n")
    (row,) = program("mcp", "list", "--json").json
    assert row["logged_in"] is False
    done = program("mcp", "test", "far")
    assert done.code == 1
    assert "hermes mcp login far" in done.err
    assert "no login" in program("mcp", "logout", "far").out


@pytest.fixture
def authority() -> Iterator[Authority]:
    server, authority = locked_server(free_port())
    running = Thread(target=server.run)
    running.start()
    asyncio.run(until_open(int(authority.url.rpartition(":")[2])))
    yield authority
    server.should_exit = True
    running.join(60)
    assert not running.is_alive()


def test_settings_alone_log_in_and_their_secret_goes_to_the_environment_file(
    program: Program, authority: Authority
) -> None:
    authority.machines["robot"] = "a-secret-of-a-robot"
    who = ("--client-id", "robot", "--client-secret", "a-secret-of-a-robot", "--unattended")
    done = program("mcp", "add", "locked", "--url", f"{authority.url}/mcp", *who)
    assert (done.code, done.err) == (0, "")
    settings = (program.home / "config.yaml").read_text()
    assert "${MCP_LOCKED_CLIENT_SECRET}" in settings
    assert "a-secret-of-a-robot" not in settings
    assert program("mcp", "logout", "locked").code == 0
    assert program("mcp", "test", "locked", "--json").json["tools"] == 1
    assert program("mcp", "list", "--json").json[0]["logged_in"] is True
