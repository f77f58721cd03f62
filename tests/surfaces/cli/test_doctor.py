"""`hermes doctor`: what is wrong is named, counted and, where safe, mended."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.core.events import SessionOpened
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from tests.surfaces.cli.terminal import Terminal


def levels(hermes: Terminal, section: str) -> list[str]:
    return [
        entry["level"] for entry in hermes("doctor", "--json").json if entry["section"] == section
    ]


async def journal_with_a_session(path: Path) -> None:
    opened = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="s", tools=())
    async with SqliteJournal(path, World()) as journal:
        lease, _ = await journal.create("s1", [opened])
        await journal.release(lease)


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_an_empty_home_is_well_but_for_a_model(hermes: Terminal) -> None:
    result = hermes("doctor")
    assert result.code == 0
    assert "⚠ no model is configured" in result.out
    assert re.search(r"1\. no model is configured\n     → `hermes config set", result.out)
    assert not hermes.home.exists()


def test_a_provider_without_its_key_is_an_error_with_a_numbered_fix(hermes: Terminal) -> None:
    hermes("config", "set", "model.provider", "openrouter")
    result = hermes("doctor")
    assert result.code == 1
    assert "✗ OpenRouter needs a key, and OPENROUTER_API_KEY is not set" in result.out
    assert re.search(
        r"\d\. OpenRouter needs .*\n     → run `hermes config set OPENROUTER_API_KEY", result.out
    )
    hermes("config", "set", "OPENROUTER_API_KEY", "sk-or-v1-0123456789")
    assert hermes("doctor").code == 0


@pytest.mark.parametrize(
    ("config", "level"),
    [
        ("model: {provider: nosuch}", "error"),
        ("model: {provider: custom, base_url: 'http://127.0.0.1:1/v1', default: x}", "error"),
        ("model: {provider: openrouter, api_key: literal}", "ok"),
        ("model: {provider: openrouter, api_key: '${NOT_SET_KEY}'}", "error"),
        ("model: {provider: box, default: x}\nproviders: {box: {base_url: 'http://box/v1'}}", "ok"),
        ("model: {provider: box}\nproviders: {box: {key_env: BOX_KEY}}", "error"),
        ("model: {base_url: 'http://127.0.0.1:1/v1'}", "error"),
        ("local: {model: tiny.gguf}", "error"),
    ],
)
def test_the_model_is_judged_by_its_settings(hermes: Terminal, config: str, level: str) -> None:
    hermes.write(config)
    assert levels(hermes, "Model") == [level]


def test_a_key_in_the_environment_is_enough(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    assert levels(hermes, "Model") == ["ok"]


def test_open_files_are_told_and_mended(hermes: Terminal) -> None:
    hermes.write("agent: {max_turns: 5}\n")
    (hermes.home / "config.yaml").chmod(0o644)
    hermes.home.chmod(0o755)
    assert levels(hermes, "Home") == ["warn"]
    assert levels(hermes, "Settings")[0] == "warn"
    result = hermes("doctor", "--fix")
    assert result.code == 0
    assert result.out.count("fixed") == 2
    assert stat.S_IMODE(hermes.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((hermes.home / "config.yaml").stat().st_mode) == 0o600
    assert "mended" not in hermes("doctor", "--fix").out


def test_a_broken_settings_file_is_an_error(hermes: Terminal) -> None:
    hermes.write("agent: [\n")
    result = hermes("doctor")
    assert result.code == 1
    assert "line 2, column 1" in result.out


def test_a_bundle_of_certificates_that_is_not_there_is_an_error(hermes: Terminal) -> None:
    hermes.write("network: {ca_bundle: /no/such.pem}\n")
    assert levels(hermes, "Certificates") == ["error"]


def test_dangerous_settings_are_told(hermes: Terminal) -> None:
    safe = levels(hermes, "Protection").count("warn")
    hermes.write("approvals: {mode: 'off'}\nsecurity: {redact_secrets: false}\n")
    assert levels(hermes, "Protection").count("warn") == safe + 2


def test_approval_by_a_model_is_not_called_off(hermes: Terminal) -> None:
    hermes.write("approvals: {mode: smart}\n")
    result = hermes("doctor")
    assert "✓ risky effects need approval (approvals.mode smart)" in result.out
    assert "approvals are off" not in result.out


def test_a_whole_journal_is_well_and_a_changed_record_is_found(hermes: Terminal) -> None:
    hermes.write("agent: {max_turns: 5}\n")
    path = Home(hermes.home).journal
    asyncio.run(journal_with_a_session(path))
    assert levels(hermes, "Journal") == ["ok"]
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE log SET at = at + 1")
        db.commit()
    result = hermes("doctor")
    assert result.code == 1
    assert "1 damaged records are skipped" in result.out
    assert "record 1 of session s1" in result.out


def test_a_damaged_search_index_is_made_anew(hermes: Terminal) -> None:
    hermes.write("agent: {max_turns: 5}\n")
    asyncio.run(journal_with_a_session(Home(hermes.home).journal))
    (hermes.home / "index.db").write_bytes(b"not an index" * 1000)
    assert levels(hermes, "Search index") == ["warn"]
    assert "the search index is rebuilt" in hermes("doctor", "--fix").out
    assert levels(hermes, "Search index") == ["ok"]


def test_a_program_that_is_needed_and_missing_is_an_error(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    # Neither `hermes` nor bash nor what is only useful.
    assert levels(hermes, "Programs") == ["warn", "error", "warn", "warn"]


def test_the_interpreter_and_packages_are_named(hermes: Terminal) -> None:
    out = hermes("doctor").out
    assert "Python {}.{}.{}".format(*sys.version_info[:3]) in out
    assert "✓ msgspec" in out


def test_what_sessions_are_shown_is_measured(hermes: Terminal) -> None:
    hermes.write("toolsets: []\ncontext_file_max_chars: 100\n")
    (hermes.home / "memories").mkdir()
    (hermes.home / "memories" / "MEMORY.md").write_text("x" * 3_000)
    (hermes.home / "SOUL.md").write_text("Be kind.")
    found = {each["text"]: each["level"] for each in hermes("doctor", "--json").json}
    assert found[f"{hermes.home}/memories/MEMORY.md has 3,000 characters; only 2,200 are used"] == (
        "warn"
    )
    assert found[f"{hermes.home}/SOUL.md has 8 of 100 characters"] == "ok"
    assert found["sessions have no tools"] == "warn"


def test_a_toolset_that_does_not_exist_is_an_error(hermes: Terminal) -> None:
    hermes.write("toolsets: [terminl]\n")
    result = hermes("doctor")
    assert result.code == 1
    assert "✗ There is no toolset named 'terminl'. Did you mean terminal?" in result.out


def test_a_profile_with_broken_settings_is_told(hermes: Terminal) -> None:
    hermes("profile", "create", "work")
    hermes("profile", "create", "home")
    (hermes.home / "profiles" / "work" / "config.yaml").write_text("agent: [\n")
    assert levels(hermes, "Profiles") == ["ok", "warn"]


def test_profiles_that_share_the_token_of_a_bot_are_told(hermes: Terminal) -> None:
    hermes("config", "set", "TELEGRAM_BOT_TOKEN", "123456:one-and-the-same-token-of-a-bot")
    hermes("profile", "create", "work", "--clone")
    hermes("profile", "create", "empty")
    told = hermes("doctor").out
    assert "TELEGRAM_BOT_TOKEN is the same in default and work" in told
    assert "one-and-the-same" not in told
    hermes("-p", "work", "config", "set", "TELEGRAM_BOT_TOKEN", "654321:another-token-of-another")
    assert "TELEGRAM_BOT_TOKEN" not in hermes("doctor").out


def test_a_profile_that_is_gone_is_told_with_the_way_back(hermes: Terminal) -> None:
    hermes.write("")
    (hermes.home / "active_profile").write_text("gone\n")
    result = hermes("doctor")
    assert result.code == 1
    assert "`hermes -p default profile use default`" in result.err
    assert hermes("-p", "default", "profile", "use", "default").code == 0
    assert hermes("config", "path").code == 0
