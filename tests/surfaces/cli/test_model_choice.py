"""Choosing what answers from the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import fails, says
from tests.surfaces.cli.program import Program, lines

KEY = "sk-ant-0123456789"
PRICED: dict[str, object] = {
    "id": "big",
    "context_length": 65_536,
    "pricing": {"prompt": "0.000001", "completion": "0.000002"},
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["tools"],
}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer.in_thread(models=("small", PRICED)) as running:
        yield running


def box(server: ScriptedServer) -> str:
    return f"providers: {{box: {{base_url: '{server.url}/v1', default_model: small}}}}\n"


def saved(program: Program) -> tuple[str, str, str]:
    model = load(Home(program.home), env={}).settings.model
    return model.default, model.provider, model.base_url


def test_without_a_terminal_it_says_how(program: Program) -> None:
    result = program("model")
    assert (result.code, result.err) == (0, "")
    assert "hermes model set NAME [--provider P] [--base-url U]" in result.out
    assert not program.home.exists()


def test_the_list_shows_providers_those_that_can_be_used_first(
    program: Program, server: ScriptedServer
) -> None:
    program.write(box(server))
    rows = program("model", "list", "--json").json
    assert [row["name"] for row in rows if row["current"]] == ["box"]
    usable = [row["usable"] for row in rows]
    assert usable == sorted(usable, reverse=True)
    missing = next(row for row in rows if row["name"] == "anthropic")
    assert "ANTHROPIC_API_KEY is not set" in missing["problem"]
    lines = program("model", "list").out.splitlines()
    assert lines[0].startswith("✓ box")
    assert lines[0].endswith("← in use")
    assert server.probes == []


def test_the_models_of_a_provider_come_with_what_is_known(
    program: Program, server: ScriptedServer
) -> None:
    program.write(box(server))
    rows = {row["model"]: row for row in program("model", "list", "box", "--json").json}
    assert set(rows) == {"small", "big"}
    assert (rows["big"]["window"], rows["big"]["vision"]) == (65_536, True)
    assert "65.5K" in program("model", "list", "box").out
    asked = len(server.probes)
    program("model", "list", "box")
    assert len(server.probes) == asked  # kept for an hour
    program("model", "list", "box", "--refresh")
    assert len(server.probes) > asked


def test_a_list_that_cannot_be_had_is_what_is_known_with_a_warning(program: Program) -> None:
    program.write(
        "providers: {box: {base_url: 'http://127.0.0.1:9/v1', models: {m: {vision: true}}}}\n"
    )
    result = program("model", "list", "box")
    assert result.code == 0
    assert "The model list may be outdated" in result.err
    assert result.out.splitlines()[2].startswith("m ")


def test_a_choice_is_saved_with_what_is_known(program: Program, server: ScriptedServer) -> None:
    program.write(box(server))
    result = program("model", "set", "big", "--provider", "box")
    assert (result.code, result.err) == (0, "")
    assert result.out == ("✓ big (box): context window 65.5K, no charge per token, vision\n")
    assert saved(program) == ("big", "box", "")
    assert program("model", "set", "box:small").code == 0
    assert saved(program) == ("small", "box", "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("x", "--provider", "nope"), 2, "There is no provider 'nope'"),
        (("x", "--provider", "anthropc"), 2, "did you mean anthropic?"),
        (("x", "--provider", "anthropic"), 1, "ANTHROPIC_API_KEY is not set"),
        (("x",), 2, "No provider is known for x;"),
        (
            ("x", "--base-url", "http://127.0.0.1:9", "--provider", "zai"),
            2,
            "custom endpoints",
        ),
    ],
)
def test_what_cannot_be_chosen_changes_nothing(
    program: Program, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = program("model", "set", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert not (program.home / "config.yaml").exists()


def test_an_address_is_looked_at_and_mended(program: Program, server: ScriptedServer) -> None:
    result = program("model", "set", "small", "--base-url", f"{server.url}/x")
    assert result.code == 0
    assert saved(program) == ("small", "custom", f"{server.url}/x")
    dead = program("model", "set", "m", "--base-url", "http://127.0.0.1:9")
    assert "lists no models" in dead.err
    assert saved(program) == ("m", "custom", "http://127.0.0.1:9")


def test_an_address_goes_when_a_vendor_is_chosen(
    program: Program, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("model", "set", "small", "--base-url", f"{server.url}/v1")
    program.write((program.home / "config.yaml").read_text() + box(server))
    program("model", "set", "big", "--provider", "box")
    assert saved(program) == ("big", "box", "")


def test_what_answers_now_is_shown_with_the_reason(
    program: Program, server: ScriptedServer
) -> None:
    program.write(box(server) + "model: {provider: box, default: big}\n")
    found = program("model", "show", "--json").json
    assert (found["model"], found["provider"], found["host"]) == ("big", "box", "127.0.0.1")
    assert (found["wire"], found["why"]) == ("chat", "config.yaml")
    assert program("model", "show").out.startswith("big (box) at 127.0.0.1 (chat)\n")
    assert program("model", "show", "small").out.startswith("small (box)")


def test_one_run_may_use_another_model_and_an_unknown_provider_is_wrong_usage(
    program: Program, server: ScriptedServer
) -> None:
    program.write(box(server))
    server.add(says("hello"))
    assert program("-m", "box:big", "-z", "hi").out == "hello\n"
    assert server.requests[0].body["model"] == "big"
    result = program("--provider", "nope", "-z", "hi")
    assert (result.code, result.out) == (2, "")


def test_the_reason_for_a_choice_is_explained(
    program: Program, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write(box(server) + "model: {provider: box}\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    found = program("config", "explain", "model", "--json").json
    assert found["winner"]["provider"] == "box"
    assert found["winner"]["why"] == "config.yaml"
    assert [row["why"] for row in found["shadowed"]] == [
        "providers.box in config.yaml",
        "ANTHROPIC_API_KEY in the environment",
    ]
    flagged = program("-m", "anthropic:claude-opus-5", "config", "explain", "model").out
    assert flagged.splitlines()[:3] == [
        "claude-opus-5 (anthropic)",
        "  from      command line",
        "  calls     api.anthropic.com (messages) with a key, window 1M",
    ]
    assert "  overrides small (box)  (config.yaml)" in flagged
    assert KEY not in flagged
    assert server.probes == []


def test_with_nothing_configured_that_is_explained_too(program: Program) -> None:
    assert program("config", "explain", "model").out.startswith("Nothing is configured:")


def test_a_chain_is_listed_grown_and_emptied(program: Program, server: ScriptedServer) -> None:
    program.write(box(server) + "fallback_model: {provider: anthropic, model: claude-x}\n")
    assert program("fallback", "add", "big", "--provider", "box").out == (
        "1. claude-x (anthropic)\n2. big (box)\n"
    )
    assert program("fallback", "add", "small", "--provider", "box", "--place", "1").code == 0
    rows = program("fallback", "list", "--json").json
    assert [(row["model"], row["usable"]) for row in rows] == [
        ("small", True),
        ("claude-x", False),
        ("big", True),
    ]
    assert "skipped: Anthropic needs a key" in program("fallback").out
    assert (
        program("fallback", "remove", "anthropic:claude-x").out
        == "anthropic:claude-x is removed.\n"
    )
    assert program("fallback", "remove", "nobody").code == 1
    assert program("fallback", "clear").out == "2 fallback models removed.\n"
    assert program("fallback", "list", "--json").json == []
    assert program("fallback", "clear").out == "0 fallback models removed.\n"


def test_a_spare_model_answers_and_says_so(program: Program, server: ScriptedServer) -> None:
    with ScriptedServer.in_thread([fails(401)]) as locked:
        program.write(
            f"model: {{default: main, provider: custom, base_url: '{locked.url}/v1'}}\n"
            + box(server)
            + "fallback_providers: [{provider: box, model: big}]\n"
        )
        server.add(says("from the spare"))
        result = program("-z", "hi")
        assert (result.code, result.out) == (0, "from the spare\n")
        assert result.err == "main (custom) refused the key; continuing with big (box).\n"
        locked.add(fails(401))
        server.add(says("again"))
        events = lines(program("-z", "hi", "--json"))
    replies = [event for event in events if event["type"] == "reply_added"]
    assert [(event["model"], event["provider"]) for event in replies] == [("big", "box")]
