"""One page about a home, for its owner and for somebody who helps."""

from __future__ import annotations

from hermes.testing.server import ScriptedServer
from tests.surfaces.cli.program import Program

KEY = "sk-or-v1-0123456789abcdef0123"
SECTIONS = [
    "Environment",
    "Model",
    "Keys",
    "Logins",
    "Terminal",
    "Tools",
    "Memory",
    "Sessions",
    "Jobs",
    "Started work",
    "Gateway",
]


def test_an_empty_home_has_a_status_and_gets_nothing(program: Program) -> None:
    page = program("status", "--json").json
    assert list(page) == SECTIONS
    assert page["Sessions"]["sessions"] == "0"
    assert "offline assistant" in page["Model"]["answers"]
    assert program("status").out.startswith("Environment\n  hermes ")
    assert program("dump").code == 0
    assert not program.home.exists()


def test_keys_are_masked_and_the_model_is_named(program: Program) -> None:
    program.write("model: {default: some/model, provider: openrouter}\n")
    program("config", "set", "OPENROUTER_API_KEY", KEY)
    program.ask("calculate 6*7")
    result = program("status")
    assert KEY not in result.out
    page = program("status", "--json").json
    assert page["Keys"] == {"OPENROUTER_API_KEY": "sk-or-...0123"}
    assert page["Model"]["answers"] == "some/model (openrouter)"
    assert page["Sessions"]["sessions"] == "1"


def test_a_summary_for_others_has_no_keys_and_nothing_that_was_said(program: Program) -> None:
    program.write(
        "model: {default: some/model}\nagent: {max_turns: 7}\nagnet: 1\n"
        "providers: {box: {base_url: 'https://me:hunter2secret@box.example/v1'}}\n"
    )
    program("config", "set", "OPENROUTER_API_KEY", KEY)
    program("sessions", "list")
    program.ask("say potato")
    for options in ((), ("--show-keys",), ("--json",)):
        said = program("dump", *options).out
        assert KEY not in said
        assert "hunter2secret" not in said
        assert "potato" not in said
        assert ("sk-or-...0123" in said) == (options == ("--show-keys",))
    page = program("dump", "--json").json
    assert page["Keys"] == {"OPENROUTER_API_KEY": "set"}
    assert page["Changed settings"]["agent.max_turns"] == "7  (config.yaml)"
    assert any("agnet" in words for words in page["Findings"].values())


def test_a_longer_look_tells_what_is_set_up_and_a_deeper_one_tries_it(
    scripted: Program, model_server: ScriptedServer
) -> None:
    page = scripted("status", "--all", "--json").json
    assert list(page)[: len(SECTIONS)] == SECTIONS
    assert page["Providers"]["openrouter"] == "OPENROUTER_API_KEY is not set"
    assert page["Providers"]["offline"] == "usable"
    assert "model.default" in page["Changed settings"]
    assert not model_server.requests
    checks = scripted("status", "--deep", "--json").json["Checks"]
    assert checks["model"].startswith("custom answers (")
    assert "there is no journal yet" in checks["sessions"]


def test_a_deep_look_names_what_does_not_answer(program: Program) -> None:
    program.write('model: {default: m, provider: custom, base_url: "http://127.0.0.1:9/v1"}\n')
    assert "127.0.0.1" in program("status", "--deep", "--json").json["Checks"]["model"]
