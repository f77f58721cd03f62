"""Which toolsets sessions are offered: shown, switched, and heeded by the next session."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.cli.program import Program


def offered(program: Program, *options: str) -> set[str]:
    rows: list[dict[str, Any]] = program("tools", "list", "--json", *options).json
    return {row["name"] for row in rows if row["enabled"]}


def sent(program: Program, server: ScriptedServer, *options: str) -> set[str]:
    """The tools that a request names."""
    server.add(says("Hi."))
    assert program("-z", "hi", *options).code == 0
    return {tool["function"]["name"] for tool in server.requests[-1].body["tools"]}


def test_a_toolset_goes_and_comes_back(scripted: Program, model_server: ScriptedServer) -> None:
    before = (scripted.home / "config.yaml").read_text()
    assert "todo" in offered(scripted)
    assert scripted("tools", "disable", "todo").code == 0
    assert "todo" not in offered(scripted)
    assert "todo" not in sent(scripted, model_server)
    scripted("tools", "enable", "todo", "user_model")
    assert {"todo", "user_model"} <= offered(scripted)
    assert "todo" in sent(scripted, model_server)
    scripted("tools", "disable", "user_model")
    assert scripted("tools", "enable", "todo").out.endswith("already.\n")
    assert before in (scripted.home / "config.yaml").read_text()


def test_a_surface_may_have_its_own(scripted: Program, model_server: ScriptedServer) -> None:
    scripted("tools", "disable", "terminal", "--platform", "cli")
    assert "terminal" not in offered(scripted, "--platform", "cli")
    assert "terminal" in offered(scripted, "--platform", "acp")
    assert "terminal" not in sent(scripted, model_server)
    assert sent(scripted, model_server, "-t", "terminal") == {"terminal", "process"}
    scripted("tools", "enable", "terminal", "--platform", "cli")
    assert "terminal" in sent(scripted, model_server)


def test_all_that_a_toolset_holds_can_go(scripted: Program) -> None:
    scripted("tools", "disable", "hermes-cli")
    assert offered(scripted) == set()
    scripted("tools", "enable", "file")
    assert offered(scripted) == {"file"}


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_a_slip_is_told_and_nothing_is_written(program: Program, verb: str) -> None:
    result = program("tools", verb, "terminl")
    assert result.code == 1
    assert "did you mean terminal?" in result.err
    assert not program.home.exists()


def test_without_a_terminal_it_says_how_and_shows_the_list(program: Program) -> None:
    result = program("tools")
    assert result.code == 0
    assert "hermes tools enable NAME" in result.err
    assert "✓ terminal" in result.out
    assert not program.home.exists()


def test_a_summary_has_a_line_for_each_surface(program: Program) -> None:
    program.write("platform_toolsets: {acp: [file]}\n")
    rows = program("tools", "--summary").out.splitlines()
    assert [row.split()[0] for row in rows] == ["cli", "acp", "api"]
    assert rows[1].endswith("4 tools: file")
    assert program("tools", "--summary", "list").code == 2
