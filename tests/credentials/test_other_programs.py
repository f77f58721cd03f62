"""Logins that other programs keep."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.credentials.auth_file import AuthEntry
from hermes.credentials.other_programs import LOGIN_PROGRAMS, OtherPrograms
from hermes.models.model_ref import ModelRef
from hermes.models.models import Models
from tests.credentials.bench import START, Bench, failed

CLAUDE = {"claudeAiOauth": {"accessToken": "sk-ant-oat-1", "expiresAt": (START + 3600) * 1000}}


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The home folder of somebody who uses other programs too."""
    folder = tmp_path / "person"
    folder.mkdir()
    return folder


def keep(person: Path, name: str, content: object) -> Path:
    path = person / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def bench(person: Path, provider: str, **more: str) -> Bench:
    return Bench(
        person / "hermes", provider=provider, env={"HOME": str(person)}, keys=more.get("keys", "")
    )


async def test_the_login_of_claude_code_is_a_bearer_token(person: Path) -> None:
    keep(person, ".claude/.credentials.json", CLAUDE)
    held = await bench(person, "anthropic").pool.pick()
    assert (held.key, held.auth, held.label) == ("sk-ant-oat-1", "bearer", "Claude Code")
    assert held.source == "login"


async def test_the_login_of_codex_brings_its_account(person: Path) -> None:
    body = base64.urlsafe_b64encode(json.dumps({"exp": START + 600}).encode()).decode()
    tokens = {"access_token": f"h.{body}.s", "refresh_token": "r", "account_id": "acc"}
    keep(person, ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": tokens})
    held = await bench(person, "openai-codex").pool.pick()
    assert held.headers == {"chatgpt-account-id": "acc"}


async def test_the_login_of_qwen_names_its_own_address(person: Path) -> None:
    creds = {"access_token": "qwen-token", "resource_url": "portal.qwen.ai", "expiry_date": 9e15}
    keep(person, ".qwen/oauth_creds.json", creds)
    held = await bench(person, "qwen-oauth").pool.pick()
    assert (held.key, held.url) == ("qwen-token", "https://portal.qwen.ai/v1")


async def test_the_login_of_gh_is_found_in_its_file(person: Path) -> None:
    keep(person, ".config/gh/hosts.yml", "github.com:\n    user: me\n    oauth_token: gho_1234\n")
    found = await OtherPrograms("copilot", {"HOME": str(person)}).read_key()
    assert found is not None
    assert (found.key, found.source) == ("gho_1234", "gh_cli")


@pytest.mark.parametrize("keeper", LOGIN_PROGRAMS, ids=lambda keeper: keeper.source)
@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"tokens": 5}', "\x00", "a: [b"])
async def test_what_cannot_be_read_is_not_there(
    person: Path, keeper: object, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert isinstance(keeper, type(LOGIN_PROGRAMS[0]))
    keep(person, f"{keeper.folder}/{keeper.file}", content)
    assert await OtherPrograms(keeper.provider, {"HOME": str(person)}).read_key() is None


async def test_their_login_is_used_only_when_there_is_nothing_else(person: Path) -> None:
    keep(person, ".claude/.credentials.json", CLAUDE)
    setup = bench(person, "anthropic", keys="A")
    held = await setup.pool.pick()
    assert held.label == "A"
    assert await setup.pool.report(held, failed("billing")) == "stop"


async def test_a_login_that_its_owner_renewed_is_taken_over(person: Path) -> None:
    keep(person, ".claude/.credentials.json", CLAUDE)
    setup = bench(person, "anthropic")
    held = await setup.pool.pick()
    assert await setup.pool.report(held, failed("auth")) == "stop"
    keep(
        person,
        ".claude/.credentials.json",
        {"claudeAiOauth": {"accessToken": "sk-ant-oat-22", "expiresAt": (START + 9999) * 1000}},
    )
    assert await setup.pool.report(held, failed("auth")) == "again"
    assert (await setup.pool.pick()).key == "sk-ant-oat-22"


async def test_an_old_login_is_not_renewed_by_us(person: Path) -> None:
    path = keep(person, ".claude/.credentials.json", CLAUDE)
    before = path.read_bytes()
    setup = bench(person, "anthropic")
    setup.clock.passed += 4000
    with pytest.raises(ProviderError, match="refresh it with `claude`"):
        await setup.pool.pick()
    assert path.read_bytes() == before


async def test_another_folder_can_be_named(person: Path, tmp_path: Path) -> None:
    keep(tmp_path, "elsewhere/.credentials.json", CLAUDE)
    env = {"HOME": str(person), "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    assert await OtherPrograms("anthropic", env).read_key() is not None


async def test_a_login_of_our_own_comes_before_the_environment(person: Path) -> None:
    setup = bench(person, "anthropic", keys="A")
    await setup.put(
        AuthEntry(
            id="1", label="mine", auth_type="oauth", source="hermes_pkce", access_token="tok-1"
        )
    )
    await setup.put(AuthEntry(id="2", label="by hand", access_token="sk-2"))
    held = await setup.store.key_sources("anthropic").keys()
    assert [key.label for key in held] == ["mine", "A", "by hand"]


async def test_the_same_secret_counts_once(person: Path) -> None:
    setup = bench(person, "p", keys="A")
    await setup.put(AuthEntry(id="2", label="copy", access_token="secret-A"))
    assert [key.label for key in await setup.store.key_sources("p").keys()] == ["A"]


async def test_entries_can_name_borrowed_keys(person: Path) -> None:
    setup = Bench(person / "hermes", keys="AB")
    await setup.put(AuthEntry(id="9", label="spare", source="env:A", priority=5))
    held = await setup.store.key_sources("p").keys()
    assert [key.label for key in held] == ["B", "spare"]


async def test_a_provider_with_no_other_key_is_reached_with_such_a_login(person: Path) -> None:
    tokens = {"access_token": "h.e30.s", "refresh_token": "r", "account_id": "acc"}
    keep(person, ".codex/auth.json", {"tokens": tokens})
    env = {"HOME": str(person)}
    models = Models(load(Home(person / "hermes"), env=env), World(), env=env)
    ref = ModelRef(provider="openai-codex", model="gpt-5.4")
    assert models.resolver.can_reach(ref)
    # It is never chosen by itself.
    assert not list(models.resolver.rank_candidates())
    assert not models.resolver.can_reach(ModelRef(provider="qwen-oauth", model="m"))
    await models.close()
