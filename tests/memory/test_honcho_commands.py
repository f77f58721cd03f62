"""`hermes honcho`, as a person uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.memory.honcho.settings import load_settings
from hermes.surfaces.cli.running import run
from tests.memory.honcho_server import Honcho, serving

Hermes = Callable[..., str]


@pytest.fixture
def honcho() -> Iterator[Honcho]:
    with serving(Honcho()) as server:
        yield server


@pytest.fixture
def hermes(
    hermes_home: Path,
    honcho: Honcho,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Hermes:
    monkeypatch.setenv("HERMES_INFERENCE_PROVIDER", "offline")
    monkeypatch.setenv("HONCHO_BASE_URL", honcho.url)
    monkeypatch.setenv("HONCHO_API_KEY", honcho.key)

    def call(*words: str, code: int = 0) -> str:
        ended = run(["honcho", *words])
        out, err = capfd.readouterr()
        assert ended == code, err
        return out + err

    return call


def test_it_is_turned_on_and_off(hermes: Hermes, honcho: Honcho) -> None:
    assert "hermes honcho enable" in hermes("status")
    assert hermes("enable") == "New sessions use Honcho.\n"
    status = json.loads(hermes("status", "--json"))
    assert (status["enabled"], status["url"], status["key"]) == (True, honcho.url, True)
    assert honcho.key not in hermes("status")
    hermes("disable")
    assert json.loads(hermes("status", "--json"))["enabled"] is False


def test_settings_are_shown_and_changed(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "honcho.json").write_text('{"workspace": "mine", "unknown": 1}')
    assert hermes("strategy") == "per-directory\n"
    assert hermes("strategy", "global") == "global\n"
    assert hermes("mode", "tools") == "tools\n"
    assert hermes("peer", "--user", "ann") == "user ann\nai   hermes\n"
    assert (
        hermes("tokens", "--context", "500") == "context   500 tokens\ndialectic 600 characters\n"
    )
    assert hermes("tokens", "--context", "0").startswith("context   all\n")
    kept = json.loads((hermes_home / "honcho.json").read_text())
    assert kept == {
        "workspace": "mine",
        "unknown": 1,
        "sessionStrategy": "global",
        "recallMode": "tools",
        "peerName": "ann",
        "contextTokens": None,
    }
    assert "per-directory" in hermes("strategy", "sometimes", code=2)


def test_a_folder_gets_a_name(
    hermes: Hermes, hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert hermes("map") == "work\n"
    assert "No folder has a name" in hermes("sessions")
    assert hermes("map", "bridge") == "bridge\n"
    assert json.loads(hermes("sessions", "--json")) == {str(folder): "bridge"}
    settings = load_settings(hermes_home, tmp_path, {})
    assert settings.session_name("s", str(folder)) == "bridge"
    assert settings.session_name("s", "/elsewhere") == "elsewhere"


def test_the_assistant_gets_an_identity(hermes: Hermes, honcho: Honcho, tmp_path: Path) -> None:
    assert hermes("identity") == "There are no facts yet.\n"
    (tmp_path / "soul.txt").write_text("Is called Ada\n\nIs brief\n")
    assert hermes("identity", str(tmp_path / "soul.txt")) == "- Is called Ada\n- Is brief\n"
    assert honcho.cards["hermes", "hermes"] == ["Is called Ada", "Is brief"]
