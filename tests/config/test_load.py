"""Settings from files and variables, and what is said about those that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.home import Home
from hermes.config.layers import expand_variables
from hermes.config.load import load
from hermes.config.migrations import Migration
from hermes.config.settings import Settings
from hermes.core.errors import NotFound, UsageError


def write(home: Home, config: str = "", env: str = "") -> None:
    home.ensure_folder(home.root)
    if config:
        home.config.write_text(config)
    if env:
        home.env_file.write_text(env)


def texts(home: Home, env: dict[str, str] | None = None) -> list[str]:
    return [finding.text for finding in load(home, env=env or {}).diagnostics]


def test_an_empty_home_has_the_defaults_and_stays_empty(home: Home) -> None:
    config = load(home, env={})
    assert config.settings == Settings()
    assert config.diagnostics == ()
    assert not home.root.exists()


def test_a_file_is_laid_over_the_defaults(home: Home) -> None:
    write(home, "agent:\n  max_turns: 5\nproviders:\n  box:\n    base_url: http://box/v1\n")
    found = load(home, env={}).settings
    assert found.agent.max_turns == 5
    assert found.agent.api_max_retries == 3
    assert found.providers["box"].base_url == "http://box/v1"
    assert found.providers["box"].enabled is True


def test_a_model_may_be_written_short(home: Home) -> None:
    write(home, "model: some/slug\n")
    assert load(home, env={}).settings.model.default == "some/slug"


def test_unknown_keys_are_reported_with_a_guess_and_stop_nothing(home: Home) -> None:
    write(home, "agent:\n  max_turn: 5\n  api_max_retries: 1\nwhatever: 1\n_config_version: 1\n")
    assert texts(home) == [
        "config.yaml: unknown setting agent.max_turn; did you mean agent.max_turns?",
        "config.yaml: unknown setting whatever",
    ]
    assert load(home, env={}).settings.agent.api_max_retries == 1


def test_a_wrong_kind_is_reported_and_the_default_is_used(home: Home) -> None:
    text = "agent:\n  max_turns: many\n  api_max_retries: 1\ndisplay: 5\nmodel:\n  api_key: [x]\n"
    write(home, text)
    assert texts(home) == [
        "config.yaml: agent.max_turns must be a whole number from 1, not 'many'; "
        "the default is used",
        "config.yaml: display must be a mapping, not 5; the default is used",
        "config.yaml: model.api_key must be text, not '***'; the default is used",
    ]
    assert load(home, env={}).settings.agent.max_turns == 90
    assert home.config.read_text() == text


def test_an_empty_section_says_nothing(home: Home) -> None:
    write(home, "agent:\nproviders:\n  box:\n")
    config = load(home, env={})
    assert (config.settings, config.diagnostics) == (Settings(), ())


def test_a_broken_file_is_one_warning_with_line_and_column(home: Home) -> None:
    text = "agent:\n  max_turns: 5\n model: x\n"
    write(home, text)
    config = load(home, env={})
    assert config.settings == Settings()
    assert [finding.kind for finding in config.diagnostics] == ["syntax"]
    assert "line 3, column" in config.diagnostics[0].text
    assert home.config.read_text() == text
    assert sorted(path.name for path in home.root.iterdir()) == ["config.yaml"]


def test_a_folder_in_place_of_the_file_is_a_warning(home: Home) -> None:
    home.ensure_folder(home.config)
    assert "is not used" in texts(home)[0]


def test_variables_are_filled_in_where_they_exist(home: Home) -> None:
    write(
        home,
        "model:\n  base_url: http://${BOX_HOST}/${NOT_SET}\nterminal:\n  timeout: ${LIMIT}\n"
        "providers:\n  box:\n    extra_headers: {X-A: '${A_TOKEN}'}\n",
        env="BOX_HOST=box\nA_TOKEN=secret-token\n",
    )
    found = load(home, env={"BOX_HOST": "outside", "LIMIT": "50"}).settings
    assert found.model.base_url == "http://box/${NOT_SET}"
    assert found.terminal.timeout == 50
    assert found.providers["box"].extra_headers == {"X-A": "secret-token"}


@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=4), max_leaves=8)
)
def test_nothing_is_filled_in_without_variables(value: Any) -> None:
    assert expand_variables(value, {}) == value


def test_a_saved_provider_wins_over_a_left_over_variable(home: Home) -> None:
    env = {"HERMES_INFERENCE_PROVIDER": "left-over"}
    assert load(home, env=env).settings.model.provider == "left-over"
    write(home, "model: {provider: saved}\n")
    config = load(home, env=env)
    assert config.settings.model.provider == "saved"
    assert config.diagnostics == ()


def test_the_first_of_two_variables_wins_and_the_process_wins_over_the_file(home: Home) -> None:
    write(home, env="HERMES_INFERENCE_MODEL=d\nHERMES_MODEL=e\n")
    env = {"HERMES_MODEL": "b", "HERMES_INFERENCE_MODEL": "a"}
    explanation = load(home, env=env).explain("model.default")
    assert [held.value for held in explanation.shadows] == ["b", "d", "e", ""]
    assert explanation.value == "a"


def test_other_behaviour_does_not_come_from_the_env_file(home: Home) -> None:
    write(home, env="AGENT_MAX_TURNS=3\nagent.max_turns=3\n")
    assert load(home, env={}).settings == Settings()


@pytest.mark.parametrize(("word", "mode"), [("1", "off"), ("true", "off"), ("0", "manual")])
def test_a_switch_says_nothing_unless_it_is_on(home: Home, word: str, mode: str) -> None:
    config = load(home, env={"HERMES_YOLO_MODE": word})
    assert config.settings.approvals.mode == mode


def test_whoever_wants_to_be_asked_is_asked(home: Home) -> None:
    write(home, "approvals:\n  mode: smart\n")
    for env in ({}, {"HERMES_YOLO_MODE": "1"}):
        config = load(home, env={"HERMES_EXEC_ASK": "1", **env})
        assert config.settings.approvals.mode == "manual"


def test_a_stale_variable_is_ignored_or_reported(home: Home) -> None:
    write(home, "agent:\n  max_turns: 5\n")
    assert texts(home, {"HERMES_MAX_ITERATIONS": "lots"}) == [
        "HERMES_MAX_ITERATIONS in the environment is ignored: agent.max_turns must be a whole "
        "number from 1, not 'lots'"
    ]
    assert texts(home, {"HERMES_MAX_ITERATIONS": "7"}) == [
        "HERMES_MAX_ITERATIONS in the environment overrides agent.max_turns in config.yaml"
    ]
    assert texts(home, {"HERMES_MAX_ITERATIONS": "5"}) == []
    assert texts(home, {"HERMES_MAX_ITERATIONS": ""}) == []


def test_a_wrong_flag_is_a_usage_error(home: Home) -> None:
    with pytest.raises(UsageError, match=r"agent\.max_turns must be a whole number"):
        load(home, flags={"agent.max_turns": "x"}, env={})
    with pytest.raises(UsageError, match=r"nknown setting agent\.x"):
        load(home, session={"agent.x": 1}, env={})


def test_an_unknown_key_is_explained_by_its_neighbours(home: Home) -> None:
    config = load(home, env={})
    with pytest.raises(NotFound, match=r"did you mean agent\.max_turns") as caught:
        config.explain("agent.max_turn")
    assert caught.value.near[0] == "agent.max_turns"
    with pytest.raises(NotFound, match="is a section"):
        config.explain("agent")


def test_the_file_may_be_left_out(home: Home) -> None:
    write(home, "agent: {max_turns: 5}\n")
    assert load(home, env={}, use_file=False).settings == Settings()


def test_every_secret_is_known_to_the_redactor(home: Home) -> None:
    write(
        home,
        "model: {api_key: literal-key}\nproviders: {b: {extra_headers: {A: header-key}}}\n",
        env="X_API_KEY=file-secret\n",
    )
    config = load(home, env={"Y_TOKEN": "process-secret", "MY_KEY": "short"})
    assert config.secret_values() == {
        "literal-key",
        "header-key",
        "file-secret",
        "process-secret",
    }


def test_an_older_file_is_read_as_if_it_were_new(home: Home) -> None:
    def rename(data: dict[str, Any]) -> dict[str, Any]:
        agent = data.get("agent", {})
        if "turns" in agent:
            agent["max_turns"] = agent.pop("turns")
        return data

    text = "agent:\n  turns: 5\n"
    write(home, text)
    config = load(home, env={}, steps=[Migration(to=2, change=rename)])
    assert config.settings.agent.max_turns == 5
    assert [finding.kind for finding in config.diagnostics] == ["version"]
    assert "hermes config migrate" in config.diagnostics[0].fix
    assert home.config.read_text() == text


def test_a_step_that_fails_does_not_stop_the_start(home: Home) -> None:
    write(home, "agent:\n  max_turns: 5\nmodel: 1\n")
    steps = [Migration(to=2, change=lambda data: data["nothing"])]
    config = load(home, env={}, steps=steps)
    assert config.settings.agent.max_turns == 5
    assert "cannot be migrated to version 2" in config.diagnostics[1].text


def test_a_newer_file_is_reported(home: Home) -> None:
    write(home, "_config_version: 99\nagent: {max_turns: 5}\n")
    config = load(home, env={})
    assert config.settings.agent.max_turns == 5
    assert config.diagnostics[0].text == "config.yaml has version 99; this program supports up to 1"
