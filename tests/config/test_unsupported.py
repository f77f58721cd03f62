"""Settings of the specification that do nothing here are named with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.edit import set_from_text
from hermes.config.home import Home
from hermes.config.load import load
from hermes.config.schema import find_setting, parse_key
from hermes.config.settings import Settings
from hermes.config.unsupported import REASONS
from hermes.core.errors import UsageError


def findings(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    (tmp_path / "config.yaml").write_text(text)
    return [(each.kind, each.text) for each in load(Home(tmp_path), env={}).diagnostics]


@pytest.mark.parametrize("key", REASONS)
def test_no_setting_that_exists_is_called_unsupported(key: str) -> None:
    assert find_setting(Settings, parse_key(key)) is None


def test_the_reason_is_told_and_other_settings_hold(tmp_path: Path) -> None:
    text = "compression: {protect_first_n: 5}\nbrowser: {engine: x}\nvoice: {}\n"
    (kind, first), (_, second) = findings(tmp_path, text)
    assert kind == "unsupported_key"
    assert first == "config.yaml: browser has no effect: this version has no browser"
    assert second == "config.yaml: voice has no effect: this version has no voice input"
    assert load(Home(tmp_path), env={}).settings.compression.protect_first_n == 5


def test_such_a_setting_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="define the endpoint in `providers`"):
        set_from_text(Home(tmp_path), "delegation.base_url", "http://x")
