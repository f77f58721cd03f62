"""The model that answers is the one requested; otherwise nothing answers and the error says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.world import World
from hermes.providers.local_discovery import choose_model, parameters_in_name
from hermes.providers.model_listing import ModelInfo
from hermes.providers.model_servers import ModelListing, ModelListingCache
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import fails, says
from tests.surfaces.cli.program import Program

KEYS = ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture
def program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Program:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HERMES_HOME", str(home))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    return Program(home, work, capsys)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer.in_thread([says("hello")] * 4, models=("small", "big")) as running:
        yield running


def box(server: ScriptedServer) -> str:
    return f"providers: {{box: {{base_url: '{server.url}/v1', default_model: small}}}}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("-m nosuch", "Nothing here serves a model named 'nosuch'"),
        ("-m gpt-5.2", "OPENAI_API_KEY is not set; run `hermes config set OPENAI_API_KEY …`"),
        ("-m anthropic/claude-opus-5", "ANTHROPIC_API_KEY is not set"),
        ("--provider openrouter", "OPENROUTER_API_KEY is not set"),
        ("--provider nosuch", "There is no provider 'nosuch'"),
        ("--provider offline -m nosuch", "The offline assistant has no model 'nosuch'"),
        ("-m ./nosuch.gguf", "cannot be read (no such file or directory); check the path"),
        ("--provider embedded", "No model file is chosen; name one with -m FILE"),
    ],
)
def test_a_model_that_cannot_be_used_is_an_error(program: Program, words: str, told: str) -> None:
    result = program(*words.split(), "-z", "calculate 6*7")
    assert result.code in (1, 2)
    assert result.out == ""
    assert told in result.err
    assert result.err.count("\n") == 1


def test_a_model_of_the_settings_that_nothing_serves_is_an_error(program: Program) -> None:
    program.write("model: {default: nosuch}\n")
    result = program("-z", "calculate 6*7")
    assert (result.code, result.out) == (1, "")
    problem = program("status", "--json").json["Model"]["problem"]
    assert result.err == f"error: {problem}\n"
    doctor = program("doctor")
    assert doctor.code == 1
    assert "✗ Nothing here serves a model named 'nosuch'" in doctor.out


def test_a_model_that_a_server_does_not_list_is_not_asked_for(
    program: Program, server: ScriptedServer
) -> None:
    program.write(box(server))
    result = program("-m", "box:smal", "-z", "hi")
    assert (result.code, result.out) == (1, "")
    assert "box does not list 'smal'; similar: small." in result.err
    assert server.requests == []
    assert program("-m", "box:big", "-z", "hi").out == "hello\n"


def test_a_list_that_is_here_also_holds_for_an_address_of_a_variable(
    program: Program, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    assert program("model", "list", "custom", "--json").code == 0
    result = program("-m", "nosuch", "-z", "hi")
    assert (result.code, result.out) == (1, "")
    assert server.requests == []


def test_asking_about_one_model_leaves_no_list_that_lacks_the_others(tmp_path: Path) -> None:
    clock = World().clock
    cache = ModelListingCache(tmp_path, clock)
    one = (ModelInfo(id="small"),)
    cache.store(ModelListing(url="http://x/v1", at=clock.now(), models=one, complete=False))
    assert cache.fresh("http://x/v1") is None
    assert cache.fresh("http://x/v1", partial=True) is not None


def test_a_dead_server_is_named_with_its_address(program: Program) -> None:
    program.write("providers: {box: {base_url: 'http://127.0.0.1:1/v1'}}\n")
    for words in (("--provider", "box"), ("--provider", "box", "-m", "small")):
        result = program(*words, "-z", "hi")
        assert (result.code, result.out) == (1, "")
        assert "127.0.0.1:1" in result.err
        assert "start" in result.err.lower()
    told = program("--provider", "box", "status", "--json").json["Model"]["problem"]
    assert told.startswith("No server answers at http://127.0.0.1:1/v1; start it")
    assert program("--provider", "box", "doctor").code == 1


def test_no_fallback_model_stands_in_for_one_that_is_unknown(program: Program) -> None:
    unknown = fails(404, "model_not_found")
    with ScriptedServer.in_thread([unknown, says("spare")]) as server:
        url = f"{server.url}/v1"
        program.write(
            f"model: {{default: first, provider: custom, base_url: '{url}'}}\n"
            f"fallback_providers: [{{provider: custom, model: spare, base_url: '{url}'}}]\n"
        )
        refused = program("-m", "nosuch", "-z", "hi")
        assert (refused.code, refused.out) == (1, "")
        assert [request.body["model"] for request in server.requests] == ["nosuch"]


def test_status_doctor_and_explanations_name_the_same_model(
    program: Program, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    page = program("status", "--json").json["Model"]
    assert page == {
        "answers": "small (custom)",
        "because": "OPENAI_BASE_URL in the environment",
    }
    assert "small (custom) answers: OPENAI_BASE_URL in the environment" in program("doctor").out
    shown = program("model", "show", "--json").json
    assert (shown["model"], shown["why"]) == ("small", page["because"])
    said = program("-z", "hi")
    assert said.out == "hello\n"
    assert "Using small (custom)" in said.err


def test_a_provider_without_a_key_is_skipped_in_the_explanation_as_in_a_chat(
    program: Program, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write(
        "providers: {closed: {base_url: 'https://closed.example/v1', key_env: CLOSED_KEY}, "
        f"open: {{base_url: '{server.url}/v1', default_model: small}}}}\n"
    )
    found = program("config", "explain", "model", "--json").json
    assert found["winner"]["provider"] == "open"
    assert program("status", "--json").json["Model"]["answers"] == "small (open)"
    assert program("-z", "hi").out == "hello\n"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen3:0.6b", 600_000_000),
        ("smollm2-135m-instruct", 135_000_000),
        ("Qwen3-8B-Q4_K_M.gguf", 8_000_000_000),
        ("gpt-oss:20b", 20_000_000_000),
        ("llama3.2", 0),
        ("mixtral-8x7b", 0),
    ],
)
def test_a_name_states_the_parameters(name: str, parameters: float) -> None:
    assert parameters_in_name(name) == parameters


def test_a_server_with_only_tiny_models_is_not_chosen_by_itself() -> None:
    assert choose_model(["qwen3:0.6b", "smollm2:135m"]) == ""
    assert choose_model(["qwen3:0.6b", "llama3.2:3b"]) == "llama3.2:3b"
