"""Setting and unsetting keys and secrets of a home."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.codec.values import JsonObject
from hermes.config.edit import (
    SettingChange,
    allow_always,
    migrate_file,
    set_from_text,
    unset,
    write_settings,
)
from hermes.config.home import Home
from hermes.config.load import load
from hermes.config.migrations import REMOVED, Migration
from hermes.core.errors import ConfigError, NotFound, UsageError


def test_only_what_was_set_is_written(home: Home) -> None:
    assert set_from_text(home, "agent.max_turns", "40") == SettingChange(
        key="agent.max_turns", place="config.yaml", shown="40"
    )
    assert home.config.read_text() == "_config_version: 1\nagent:\n  max_turns: 40\n"
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600


def test_comments_and_other_lines_stay(home: Home) -> None:
    home.ensure_folder(home.root)
    home.config.write_text("# mine\nagent:   # here\n    max_turns: 5 # few\n\nmodel:  'x'\n")
    set_from_text(home, "agent.max_turns", "6")
    set_from_text(home, "terminal.timeout", "30")
    assert home.config.read_text() == (
        "# mine\nagent:   # here\n    max_turns: 6 # few\n\nmodel:  'x'\nterminal:\n  timeout: 30\n"
    )


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("display.streaming", "off", "streaming: false"),
        ("model.context_length", "null", "context_length: null"),
        ("model.default", "123", 'default: "123"'),
        ("terminal.timeout", "2.5", "timeout: 2.5"),
        ("toolsets", "a, b", "toolsets: [a, b]"),
        ("toolsets", '["a b"]', 'toolsets: ["a b"]'),
        ("approvals.mode", "off", 'mode: "off"'),
        ('providers.box.models."qwen2.5".context_length', "8192", "      qwen2.5:"),
    ],
)
def test_values_are_written_as_their_kind(home: Home, key: str, text: str, line: str) -> None:
    set_from_text(home, key, text)
    assert line in home.config.read_text()
    assert load(home, env={}).diagnostics == ()
    assert load(home, env={}).explain(key).source.kind == "file"


@pytest.mark.parametrize(
    ("key", "text", "error", "words"),
    [
        ("agent.max_turn", "5", NotFound, r"did you mean agent\.max_turns.*nothing was written"),
        ("terminal.timeout", "abc", ConfigError, "must be a number above 0, not 'abc'"),
        ("terminal", "abc", ConfigError, "is a section"),
        ("providers.box", "abc", ConfigError, "is a section"),
        ("..", "abc", UsageError, "is not a key"),
        ("HERMES_MAX_ITERATIONS", "5", UsageError, r"hermes config set agent\.max_turns"),
    ],
)
def test_what_cannot_be_set_is_reported_and_nothing_is_written(
    home: Home, key: str, text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        set_from_text(home, key, text)
    assert not home.root.exists()


def test_an_unknown_key_is_written_by_force(home: Home) -> None:
    set_from_text(home, "my.own", "[1, 2]", force=True)
    assert "my:\n  own: [1, 2]\n" in home.config.read_text()
    set_from_text(home, "my.word", "some words", force=True)
    assert 'word: "some words"' in home.config.read_text()


def test_secrets_go_to_the_env_file_and_are_shown_masked(home: Home) -> None:
    edited = set_from_text(home, "OPENROUTER_API_KEY", "sk-or-v1-0123456789abcdef")
    assert edited == SettingChange(key="OPENROUTER_API_KEY", place=".env", shown="sk-or-...cdef")
    assert home.env_file.read_text() == "OPENROUTER_API_KEY=sk-or-v1-0123456789abcdef\n"
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert not home.config.exists()
    assert set_from_text(home, "model.api_key", "sk-literal").shown == "***"


def test_the_env_file_keeps_its_other_lines(home: Home) -> None:
    home.ensure_folder(home.root)
    home.env_file.write_text("# keys\nexport A_KEY='1' # old\nB_KEY=2\nA_KEY=3")
    set_from_text(home, "A_KEY", "new value")
    assert home.env_file.read_text() == '# keys\nB_KEY=2\nA_KEY="new value"'
    set_from_text(home, "C_KEY", "4")
    assert home.env_file.read_text() == '# keys\nB_KEY=2\nA_KEY="new value"\nC_KEY=4\n'
    unset(home, "A_KEY")
    assert home.env_file.read_text() == "# keys\nB_KEY=2\nC_KEY=4\n"
    with pytest.raises(NotFound):
        unset(home, "A_KEY")


def test_a_short_model_becomes_a_mapping_when_it_must(home: Home) -> None:
    home.ensure_folder(home.root)
    home.config.write_text("model: slug  # best\n")
    set_from_text(home, "model", "other")
    assert load(home, env={}).settings.model.default == "other"
    home.config.write_text("model: slug  # best\n")
    set_from_text(home, "model.provider", "me")
    found = load(home, env={}).settings.model
    assert (found.default, found.provider) == ("slug", "me")
    assert "# best" in home.config.read_text()


def test_a_key_is_unset_once(home: Home) -> None:
    set_from_text(home, "agent.max_turns", "5")
    assert unset(home, "agent.max_turns") == SettingChange(
        key="agent.max_turns", place="config.yaml"
    )
    assert load(home, env={}).explain("agent.max_turns").source.kind == "default"
    with pytest.raises(NotFound, match=r"does not set agent\.max_turns"):
        unset(home, "agent.max_turns")
    home.config.write_text("model: slug\n")
    unset(home, "model.default")
    assert home.config.read_text() == ""


def test_a_broken_or_newer_file_is_not_written(home: Home) -> None:
    home.ensure_folder(home.root)
    for text, words in (
        ("a: [\n", "config.yaml is invalid .line 2, column 1"),
        ("_config_version: 99\n", "newer than this program"),
    ):
        home.config.write_text(text)
        with pytest.raises(ConfigError, match=words):
            set_from_text(home, "agent.max_turns", "5")
        assert home.config.read_text() == text


def test_a_program_cannot_write_a_value_that_it_would_refuse_to_read(home: Home) -> None:
    with pytest.raises(ConfigError, match="must be a whole number"):
        write_settings(home, {("agent", "max_turns"): "many"})
    write_settings(home, {("command_allowlist",): ["rm -r build"], ("agent", "x"): REMOVED})
    assert load(home, env={}).settings.command_allowlist == ("rm -r build",)


def test_a_link_keeps_pointing_to_its_file(home: Home, tmp_path: Path) -> None:
    home.ensure_folder(home.root)
    (tmp_path / "dotfiles.yaml").write_text("agent: {max_turns: 5}\n")
    home.config.symlink_to(tmp_path / "dotfiles.yaml")
    set_from_text(home, "agent.max_turns", "6")
    assert home.config.is_symlink()
    assert (tmp_path / "dotfiles.yaml").read_text() == "agent: {max_turns: 6}\n"


def test_a_home_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Cannot write"):
        set_from_text(Home(tmp_path / "file"), "agent.max_turns", "5")


def test_processes_that_write_at_once_lose_nothing(home: Home) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hermes.config.edit import set_from_text\n"
        "from hermes.config.home import Home\n"
        f"home = Home(Path({str(home.root)!r}))\n"
        "for n in range(5):\n"
        "    set_from_text(home, f'mine.p{sys.argv[1]}_{n}', '1', force=True)"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(3)]
    assert [run.wait(120) for run in runs] == [0, 0, 0]
    text = home.config.read_text()
    assert all(f"p{p}_{n}: 1" in text for p in range(3) for n in range(5))
    assert sorted(path.name for path in home.root.iterdir()) == ["config.yaml", "locks"]


def test_a_file_is_migrated_with_a_copy_of_what_it_was(home: Home) -> None:
    def rename(data: JsonObject) -> JsonObject:
        data["agent"]["max_turns"] = data["agent"].pop("turns")
        return data

    text = "# mine\nagent:\n  turns: 5\n  # kept\nunknown: 1\n"
    home.ensure_folder(home.root)
    home.config.write_text(text)
    changes = migrate_file(home, (Migration(to=2, change=rename),))
    assert changes == {
        ("agent", "turns"): REMOVED,
        ("agent", "max_turns"): 5,
        ("_config_version",): 2,
    }
    assert home.config.read_text() == (
        "# mine\nagent:\n  max_turns: 5\n  # kept\nunknown: 1\n_config_version: 2\n"
    )
    assert (home.root / "config.yaml.bak.1").read_text() == text
    assert migrate_file(home, (Migration(to=2, change=rename),)) == {}
    assert migrate_file(Home(home.root / "empty")) == {}


def test_what_was_allowed_for_ever_is_added_once(home: Home) -> None:
    for effect in ("rm -r build", "git push", "rm -r build"):
        allow_always(home, effect)
    assert load(home, env={}).settings.command_allowlist == ("rm -r build", "git push")
    assert home.config.read_text().count("rm -r build") == 1
