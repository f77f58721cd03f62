"""`hermes prompt-size`: the fixed part of a request, part by part, as it is really sent."""

from __future__ import annotations

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.surfaces.cli.program import OFFLINE, Program

BUDGET_TOKENS = 3_000
BUDGET_BYTES = 12_000


def test_layers_and_tools_are_listed_with_their_sum(program: Program) -> None:
    found = program(*OFFLINE, "prompt-size", "--json").json
    parts = found["parts"]
    assert {part["part"] for part in parts} == {"system", "tool"}
    assert "identity" in {part["name"] for part in parts}
    assert {"terminal", "read_file"} <= {part["name"] for part in parts}
    assert found["tokens"] == sum(part["tokens"] for part in parts)
    assert found["bytes"] == sum(part["bytes"] for part in parts)
    assert found["estimated"]
    rows = program(*OFFLINE, "prompt-size").out.splitlines()
    assert len(rows) == 2 + len(parts) + 1
    assert rows[-1].split() == ["total", str(found["bytes"]), str(found["tokens"])]


def test_a_default_install_stays_within_the_budget(program: Program) -> None:
    found = program(*OFFLINE, "prompt-size", "--json").json
    advice = f"Shorten tool descriptions or prompt layers, or raise the budget in {__file__}."
    assert found["tokens"] <= BUDGET_TOKENS, f"BUDGET_TOKENS is exceeded. {advice}"
    assert found["bytes"] <= BUDGET_BYTES, f"BUDGET_BYTES is exceeded. {advice}"


def test_the_sizes_are_those_of_a_real_request(
    scripted: Program, model_server: ScriptedServer
) -> None:
    model_server.add(says("hi"))
    parts = scripted("prompt-size", "--json").json["parts"]
    assert scripted("-z", "hello").code == 0
    body = model_server.requests[0].body
    system = body["messages"][0]["content"]
    layers = [part["bytes"] for part in parts if part["part"] == "system"]
    assert len(system.encode()) == sum(layers) + 2 * (len(layers) - 1)
    sent = {tool["function"]["name"] for tool in body["tools"]}
    assert sent == {part["name"] for part in parts if part["part"] == "tool"}


def test_project_files_count_unless_rules_are_ignored(program: Program) -> None:
    (program.work / "AGENTS.md").write_text("Always speak in rhymes. " * 20)
    with_rules = program(*OFFLINE, "prompt-size", "--json").json
    without = program(*OFFLINE, "--ignore-rules", "prompt-size", "--json").json
    names = {part["name"] for part in with_rules["parts"]}
    assert names - {part["name"] for part in without["parts"]} == {"project files", "skills index"}


def test_fewer_tools_weigh_less(program: Program) -> None:
    found = program(*OFFLINE, "-t", "todo", "prompt-size", "--json").json
    assert [part["name"] for part in found["parts"] if part["part"] == "tool"] == ["todo"]


def test_another_surface_has_other_words(program: Program) -> None:
    def platform_bytes(name: str) -> list[int]:
        found = program(*OFFLINE, "prompt-size", "--platform", name, "--json").json
        return [part["bytes"] for part in found["parts"] if part["name"] == "platform"]

    assert platform_bytes("cli") != platform_bytes("api")
    assert platform_bytes("nosuch") == []
