"""`hermes model` as a person uses it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from hermes.providers.embedded.install import find_installable
from hermes.surfaces.cli.commands.model import DownloadProgress
from tests.providers.embedded.gguf_files import write_model
from tests.providers.embedded.wheels import only, write_wheel
from tests.surfaces.cli.terminal import Terminal

WEIGHTS = Path(__file__).parents[3] / ".venv" / "weights" / "smollm2.gguf"


def placed(hermes: Terminal, name: str, parameters: int) -> Path:
    """A model in the home, as if installed."""
    folder = hermes.home / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return write_model(folder / f"{name}.gguf", parameters=parameters)


@pytest.mark.parametrize(
    "arguments", [("list", "embedded"), ("list", "embedded", "--json")], ids=" ".join
)
def test_an_empty_home_shows_what_can_be_installed_and_makes_nothing(
    hermes: Terminal, arguments: tuple[str, ...]
) -> None:
    result = hermes("model", *arguments)
    assert result.code == 0
    assert "smollm2" in result.out
    assert "Apache-2.0" in result.out
    assert not hermes.home.exists()


def test_the_list_tells_what_is_there_and_what_is_damaged(hermes: Terminal) -> None:
    path = placed(hermes, "big", 8_000_000_000)
    (hermes.home / "models" / "bad.gguf").write_text("nonsense")
    rows = {row["name"]: row for row in hermes("model", "list", "embedded", "--json").json}
    assert rows["big"] == {
        "name": "big",
        "installed": True,
        "path": str(path),
        "size": path.stat().st_size,
        "parameters": 8_000_000_000,
        "window": 8192,
        "reduced": False,
        "licence": "mit",
        "note": "",
        "problem": "",
    }
    assert "not a GGUF file" in rows["bad"]["problem"]
    assert not rows["smollm2"]["installed"]
    lines = hermes("model", "list", "embedded").out.splitlines()
    assert [line[:1] for line in lines] == ["✗", "✓", " "]
    assert "8B parameters, 1 MB, with tools" in lines[1]


def test_a_model_is_shown_by_name_or_by_path(hermes: Terminal) -> None:
    path = placed(hermes, "tiny", 135_000_000)
    by_name = hermes("model", "show", "tiny", "--json")
    assert by_name.json == {
        "path": str(path),
        "name": "Tiny",
        "architecture": "llama",
        "parameters": 135_000_000,
        "size": path.stat().st_size,
        "window": 4096,
        "trained_window": 8192,
        "licence": "mit",
        "chat_template": True,
        "reduced": True,
    }
    assert hermes("model", "show", str(path), "--json") == by_name
    assert "Reduced mode: no tools" in hermes("model", "show", "tiny").out


def test_a_file_becomes_the_default_by_itself_only_from_1b_parameters_on(
    hermes: Terminal, tmp_path: Path
) -> None:
    tiny = placed(hermes, "tiny", 135_000_000)
    assert hermes("model", "show", "--json").json["provider"] == "offline"
    hermes.write("local: {model: tiny}\n")
    assert hermes("model", "show", "--json").json["path"] == str(tiny)
    hermes.write("")
    large = placed(hermes, "zlarge", 3_000_000_000)
    assert hermes("model", "show", "--json").json["path"] == str(large)
    assert f"{large} (embedded) answers" in hermes("doctor").out
    assert hermes("status", "--json").json["Model"]["answers"] == f"{large} (embedded)"


def test_without_a_file_the_configured_one_is_shown(hermes: Terminal) -> None:
    placed(hermes, "one", 10)
    two = placed(hermes, "two", 20)
    hermes.write("local:\n  model: two\n")
    assert hermes("model", "show", "--json").json["path"] == str(two)


def test_what_cannot_be_shown_is_one_sentence(hermes: Terminal, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_text("hello")
    broken = hermes("model", "show", str(tmp_path / "x.gguf"))
    assert (broken.code, broken.out) == (1, "")
    assert broken.err.endswith("cannot be used as a model (not a GGUF file); choose another.\n")
    missing = hermes("model", "show", str(tmp_path / "nobody.gguf"))
    assert (missing.code, missing.out) == (1, "")


def test_a_removed_model_is_gone_and_nothing_else_is(hermes: Terminal, tmp_path: Path) -> None:
    path = placed(hermes, "tiny", 10)
    other = write_model(tmp_path / "mine.gguf", parameters=10)
    assert hermes("model", "remove", "tiny") == (0, f"✓ {path} is deleted.\n", "")
    assert not path.exists()
    assert hermes("model", "remove", "tiny").code == 1
    assert hermes("model", "remove", str(other)).code == 1
    assert hermes("model", "remove", "../../mine").code == 1
    assert other.exists()


def test_an_unknown_model_cannot_be_installed(hermes: Terminal) -> None:
    result = hermes("model", "install", "gpt")
    assert result.code == 1
    assert "available: smollm2" in result.err


def test_installing_without_a_registry_says_what_to_check(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in only(tmp_path).items():
        monkeypatch.setenv(name, value)
    result = hermes("model", "install", "smollm2")
    assert (result.code, result.out) == (1, "")
    assert "could not be downloaded; check the network, proxy and package index" in result.err


@pytest.mark.local_model
def test_installing_puts_the_published_weights_into_the_home(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not WEIGHTS.exists():
        pytest.skip("needs the small weights")
    write_wheel(tmp_path / "shelf", find_installable("smollm2"), WEIGHTS.read_bytes())
    for name, value in only(tmp_path / "shelf").items():
        monkeypatch.setenv(name, value)
    path = hermes.home / "models" / "smollm2.gguf"
    first = hermes("model", "install", "smollm2")
    assert (first.code, first.out) == (0, f"✓ {path}\n")
    assert "100% of 93 MB" in first.err.splitlines()
    assert hermes("model", "install", "smollm2").out == f"smollm2 is already installed: {path}\n"
    assert hermes("model", "show", "smollm2", "--json").json["parameters"] == 134_515_008


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_sees_a_bar_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    meter = DownloadProgress()
    meter(0, 93_000_000)
    meter(46_500_000, 93_000_000)
    meter.close()
    assert screen.getvalue() == (
        f"\r{'░' * 30}   0%  0 of 93 MB\r{'█' * 15}{'░' * 15}  50%  46 of 93 MB\n"
    )


def test_a_log_gets_a_line_for_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    meter = DownloadProgress()
    for done in range(0, 101, 4):
        meter(done * 1_000_000, 100_000_000)
    meter.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{n}% of 100 MB" for n in (0, 12, 20, 32, 40, 52, 60, 72, 80, 92, 100)]
