"""Keys, kinds and their words."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.layers import suggest_keys
from hermes.config.provider_settings import ProviderSettings
from hermes.config.schema import (
    all_settings,
    describe_type,
    find_setting,
    format_key,
    from_data,
    parse_key,
)
from hermes.config.settings import OVERRIDES, SHORT_FORMS, Settings
from hermes.core.errors import UsageError


@given(st.lists(st.text(min_size=1), min_size=1).map(tuple))
def test_a_key_and_its_path_are_the_same_thing(path: tuple[str, ...]) -> None:
    assert parse_key(format_key(path)) == path


@given(st.text())
def test_a_text_is_a_key_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_key(text)


def test_names_with_dots_are_quoted() -> None:
    path = ("providers", "box", "models", "qwen2.5", "context_length")
    assert format_key(path) == 'providers.box.models."qwen2.5".context_length'


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", 'a."b', 'a"b"'])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        parse_key(key)


def test_every_setting_is_documented_and_can_be_found() -> None:
    for setting in all_settings(Settings):
        assert setting.meaning, setting.key
        assert setting.meaning.endswith("."), setting.key
        assert find_setting(Settings, setting.path) == setting


def test_a_setting_that_explains_zero_accepts_zero() -> None:
    explained = [each for each in all_settings(Settings) if "; 0 " in each.meaning]
    assert [each.key for each in explained if from_data(each.kind, 0) != 0] == []


def test_every_variable_overrides_a_setting_that_exists() -> None:
    keys = {setting.key for setting in all_settings(Settings)}
    assert {override.key for override in OVERRIDES} <= keys
    assert {f"{name}.{inner}" for name, inner in SHORT_FORMS.items()} <= keys
    variables = [override.variable for override in OVERRIDES]
    assert len(variables) == len(set(variables))


def test_a_chosen_name_leads_to_its_section() -> None:
    box = find_setting(Settings, ("providers", "box"))
    url = find_setting(Settings, ("providers", "box", "base_url"))
    window = find_setting(Settings, ("providers", "box", "models", "m", "context_length"))
    assert box is not None and box.kind is ProviderSettings
    assert url is not None and (url.kind, url.key) == (str, "providers.box.base_url")
    assert window is not None and window.default is None
    assert find_setting(Settings, ("providers", "box", "nothing")) is None
    assert find_setting(Settings, ("agent", "max_turns", "more")) is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("agent.max_turns", "a whole number from 1"),
        ("approvals.mode", "one of manual, smart, off"),
        ("display.streaming", "true or false"),
        ("toolsets", "a list of text"),
        ("model.default", "text"),
        ("model.context_length", "a whole number from 1 or null"),
        ("terminal.timeout", "a number above 0"),
        ("providers.x.extra_body", "a mapping"),
    ],
)
def test_kinds_are_reported_in_words(key: str, words: str) -> None:
    setting = find_setting(Settings, parse_key(key))
    assert setting is not None
    assert describe_type(setting.kind) == words


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("agent.max_turn", "agent.max_turns"),
        ("agnt", "agent"),
        ("max_turns", "agent.max_turns"),
        ("agents.max_turns", "agent.max_turns"),
        ("providers.box.base_ulr", "providers.box.base_url"),
    ],
)
def test_a_slip_leads_to_the_key_that_was_meant(key: str, meant: str) -> None:
    assert suggest_keys(parse_key(key))[0] == meant
