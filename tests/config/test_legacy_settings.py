"""Settings in older words mean what they meant."""

from __future__ import annotations

from pathlib import Path

from hermes.config.home import Home
from hermes.config.load import Config, load
from hermes.config.migrations import translate_legacy

LISTED = """
custom_providers:
  - {name: My Box, base_url: "http://box.lan/v1", key_env: BOX_KEY, model: big, api_mode: messages}
  - {base_url: "http://10.0.0.1/v1", models: [a, b]}
fallback_model: {provider: openrouter, model: x/y}
"""


def read(tmp_path: Path, text: str) -> Config:
    (tmp_path / "config.yaml").write_text(text)
    return load(Home(tmp_path), env={})


def test_a_list_of_endpoints_becomes_endpoints_by_name(tmp_path: Path) -> None:
    config = read(tmp_path, LISTED)
    box = config.settings.providers["my-box"]
    assert (box.base_url, box.key_env) == ("http://box.lan/v1", "BOX_KEY")
    assert (box.default_model, box.api_mode) == ("big", "anthropic_messages")
    assert config.settings.providers["custom-2"].base_url == "http://10.0.0.1/v1"
    assert config.diagnostics == ()


def test_a_single_spare_model_becomes_the_end_of_the_chain(tmp_path: Path) -> None:
    chain = "fallback_providers: [{provider: zai, model: glm-5}]\n"
    config = read(tmp_path, chain + "fallback_model: {provider: openrouter, model: x/y}\n")
    assert [entry.provider for entry in config.settings.fallback_providers] == ["zai", "openrouter"]


def test_other_names_of_an_address_are_understood(tmp_path: Path) -> None:
    for name in ("api", "url", "base_url"):
        config = read(tmp_path, f"providers: {{box: {{{name}: 'http://box.lan/v1'}}}}\n")
        assert config.settings.providers["box"].base_url == "http://box.lan/v1"


def test_what_is_written_in_todays_words_wins(tmp_path: Path) -> None:
    text = (
        "custom_providers: [{name: box, base_url: 'http://old.lan/v1'}]\n"
        "providers: {box: {url: 'http://older.lan/v1', base_url: 'http://new.lan/v1'}}\n"
    )
    assert read(tmp_path, text).settings.providers["box"].base_url == "http://new.lan/v1"


def test_settings_of_today_stay_the_very_same() -> None:
    data = {"model": "m", "providers": {"box": {"base_url": "http://box.lan/v1"}}}
    assert translate_legacy(data) is data
    assert translate_legacy({"custom_providers": "nonsense"}) == {"custom_providers": "nonsense"}


def test_how_long_sessions_are_kept_may_be_written_as_it_was(tmp_path: Path) -> None:
    config = read(tmp_path, "sessions: {auto_prune: true, retention_days: 30, record: true}\n")
    kept = config.settings.sessions
    assert (kept.retention.mode, kept.retention.days, kept.record) == ("prune", 30, True)
    assert config.diagnostics == ()
    config = read(tmp_path, "sessions: {auto_prune: true, retention: {mode: archive}}\n")
    assert config.settings.sessions.retention.mode == "archive"


def test_who_wrote_summaries_still_writes_them(tmp_path: Path) -> None:
    text = (
        "compression: {threshold: 0.6, summary_model: small, summary_provider: zai}\n"
        "auxiliary: {compression: {model: newer}, vision: {model: eyes}}\n"
    )
    settings = read(tmp_path, text).settings
    task = settings.auxiliary.compression
    assert (task.provider, task.model) == ("zai", "newer")
    assert (settings.compression.threshold, settings.auxiliary.vision.model) == (0.6, "eyes")
    assert read(tmp_path, text).diagnostics == ()
