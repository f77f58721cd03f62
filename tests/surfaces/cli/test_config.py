"""`hermes config` as a person uses it."""

from __future__ import annotations

import stat

import pytest

from tests.surfaces.cli.terminal import Terminal

READERS = (
    ("show",),
    ("show", "--json"),
    ("get", "agent.max_turns"),
    ("get", "agent"),
    ("explain", "model.default"),
    ("path",),
    ("env-path",),
    ("check",),
    ("check", "--json"),
    ("migrate",),
    (),
)


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_reading_an_empty_home_works_and_makes_nothing(
    hermes: Terminal, arguments: tuple[str, ...]
) -> None:
    assert hermes("config", *arguments).code == 0
    assert not hermes.home.exists()


def test_what_is_set_is_shown_with_its_source(hermes: Terminal) -> None:
    assert hermes("config", "set", "agent.max_turns", "40") == (
        0,
        "agent.max_turns = 40  (config.yaml)\n",
        "",
    )
    assert hermes("config", "get", "agent.max_turns").out == "40\n"
    assert hermes("config", "get", "agent.max_turns", "--source").out == "40  (config.yaml)\n"
    assert hermes("config", "get", "agent.max_turns", "--json").json == {
        "key": "agent.max_turns",
        "value": 40,
        "source": "config.yaml",
    }
    shown = hermes("config", "show", "--json").json
    assert shown["agent.max_turns"] == {"value": 40, "source": "config.yaml"}
    assert shown["agent.api_max_retries"] == {"value": 3, "source": "default"}
    lines = hermes("config", "show").out.splitlines()
    assert [line.split() for line in lines if "max_turns" in line] == [
        ["max_turns", "40", "config.yaml"],
        ["max_turns", "0", "default"],  # of scheduled jobs
        ["max_turns", "20", "default"],  # of goals
    ]


def test_a_value_is_explained_with_all_that_it_hides(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    hermes("config", "set", "agent.max_turns", "40")
    monkeypatch.setenv("HERMES_MAX_ITERATIONS", "7")
    assert hermes("config", "explain", "agent.max_turns").out == (
        "agent.max_turns = 7\n"
        "  Maximum model calls in one turn. Must be a whole number from 1.\n"
        "  from      HERMES_MAX_ITERATIONS in the environment\n"
        "  overrides 40  (config.yaml)\n"
        "  overrides 90  (default)\n"
    )
    assert hermes("config", "explain", "agent.max_turns", "--json").json["shadows"] == [
        {"source": "config.yaml", "value": 40},
        {"source": "default", "value": 90},
    ]
    flagged = hermes("--max-turns", "3", "config", "explain", "agent.max_turns", "--json").json
    assert (flagged["value"], flagged["source"]) == (3, "command line")


def test_setting_what_a_variable_hides_is_told(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_MAX_ITERATIONS", "7")
    result = hermes("config", "set", "agent.max_turns", "40")
    assert result.code == 0
    assert result.err == (
        "warning: HERMES_MAX_ITERATIONS in the environment overrides agent.max_turns in "
        "config.yaml\n"
    )


def test_an_unknown_key_is_refused_with_a_guess(hermes: Terminal) -> None:
    result = hermes("config", "set", "agent.max_turn", "5")
    assert result.code == 1
    assert "did you mean agent.max_turns?" in result.err
    assert not hermes.home.exists()
    assert hermes("config", "set", "agent.max_turn", "5", "--force").code == 0
    assert "max_turn: 5" in (hermes.home / "config.yaml").read_text()
    assert hermes("config", "get", "agent.max_turn").code == 1


def test_a_wrong_value_changes_nothing(hermes: Terminal) -> None:
    hermes.write("terminal: {timeout: 5}\n")
    result = hermes("config", "set", "terminal.timeout", "abc")
    assert (result.code, result.out) == (1, "")
    assert "terminal.timeout must be a number above 0" in result.err
    assert (hermes.home / "config.yaml").read_text() == "terminal: {timeout: 5}\n"


def test_a_key_goes_to_the_env_file_and_is_never_shown(hermes: Terminal) -> None:
    secret = "sk-or-v1-0123456789abcdef"
    result = hermes("config", "set", "OPENROUTER_API_KEY", secret)
    assert result == (0, "OPENROUTER_API_KEY = sk-or-...cdef  (.env)\n", "")
    env_file = hermes.home / ".env"
    assert env_file.read_text() == f"OPENROUTER_API_KEY={secret}\n"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert hermes("config", "get", "OPENROUTER_API_KEY", "--source").out == (
        "sk-or-...cdef  (.env)\n"
    )
    hermes("config", "set", "model.api_key", secret)
    for arguments in (
        ("show",),
        ("show", "--json"),
        ("get", "model"),
        ("explain", "model.api_key"),
    ):
        assert secret not in hermes("config", *arguments).out
    assert hermes("config", "unset", "OPENROUTER_API_KEY").code == 0
    assert env_file.read_text() == ""


def test_unsetting_brings_the_default_back(hermes: Terminal) -> None:
    hermes.write("# why\nagent:\n  max_turns: 5\n")
    assert hermes("config", "unset", "agent.max_turns").out == (
        "agent.max_turns is no longer set in config.yaml.\n"
    )
    assert hermes("config", "get", "agent.max_turns").out == "90\n"
    assert (hermes.home / "config.yaml").read_text() == "# why\nagent:\n"
    assert hermes("config", "unset", "agent.max_turns").code == 1


def test_a_broken_file_is_one_error_and_stays_as_it_is(hermes: Terminal) -> None:
    hermes.write("agent: [\n")
    result = hermes("config", "show")
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert "line 2, column 1" in result.err
    checked = hermes("config", "check")
    assert checked.code == 1
    assert "✗" in checked.out
    assert hermes("config", "set", "agent.max_turns", "5").code == 1
    assert (hermes.home / "config.yaml").read_text() == "agent: [\n"


@pytest.mark.parametrize("text", ["agent: [\n", "- a\n- b\n", "\x00", "a: b: c\n"])
def test_nothing_starts_with_a_file_that_cannot_be_read(hermes: Terminal, text: str) -> None:
    hermes.write(text)
    for arguments in (("-z", "hi", "--provider", "offline"), ("sessions", "list"), ("serve",)):
        result = hermes(*arguments)
        assert (result.code, result.out) == (2, "")
        assert len(result.err.splitlines()) == 1
        assert "config.yaml is not used" in result.err and "`hermes config edit`" in result.err
    assert hermes("config", "path").code == 0
    assert "config.yaml is not used" in hermes("doctor").out
    ignoring = hermes("--ignore-user-config", "-z", "calculate 6*7", "--provider", "offline")
    assert (ignoring.code, ignoring.out) == (0, "6*7 = 42\n")


def test_check_names_what_is_wrong(hermes: Terminal) -> None:
    hermes.write("agnt: 1\nterminal: {timeout: soon}\n")
    result = hermes("config", "check", "--json")
    assert result.code == 0
    found = [(entry["level"], entry["kind"], entry.get("key")) for entry in result.json]
    assert ("warn", "unknown_key", "agnt") in found
    assert ("warn", "wrong_type", "terminal.timeout") in found


def test_editing_needs_a_terminal(hermes: Terminal) -> None:
    result = hermes("config", "edit")
    assert result.code == 1
    assert str(hermes.home / "config.yaml") in result.err


def test_a_profile_has_settings_of_its_own(hermes: Terminal) -> None:
    (hermes.home / "profiles" / "work").mkdir(parents=True)
    hermes("-p", "work", "config", "set", "agent.max_turns", "5")
    assert hermes("config", "get", "agent.max_turns").out == "90\n"
    assert hermes("-p", "work", "config", "get", "agent.max_turns").out == "5\n"
    assert hermes("-p", "work", "config", "path").out == (
        f"{hermes.home}/profiles/work/config.yaml\n"
    )
    assert hermes("-p", "nosuch", "config", "path").code == 1


def test_a_home_that_cannot_be_written_is_one_line(hermes: Terminal) -> None:
    hermes.home.write_text("a file")
    result = hermes("config", "set", "agent.max_turns", "5")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert "HERMES_HOME" in result.err


def test_wrong_usage_has_its_own_code(hermes: Terminal) -> None:
    assert hermes("config", "get").code == 2
    assert hermes("config", "get", "a..b").code == 2
    assert hermes("config", "nosuch").code == 2


def test_a_run_may_do_without_the_file(hermes: Terminal) -> None:
    hermes.write("agent: {max_turns: 7}\n")
    assert hermes("config", "get", "agent.max_turns").out == "7\n"
    assert hermes("--ignore-user-config", "config", "get", "agent.max_turns").out == "90\n"
    hermes.write("agent: [\n")
    result = hermes("--ignore-user-config", "--provider", "offline", "-z", "calculate 6*7")
    assert (result.code, result.out, result.err) == (0, "6*7 = 42\n", "")
