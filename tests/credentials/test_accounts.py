"""From settings and environment to the keys of a provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import NotFound
from hermes.core.world import World
from hermes.credentials.accounts import Accounts, open_accounts, pool_name
from hermes.credentials.key_pool import SharedKeyPool
from hermes.net.http import HttpClient
from hermes.providers.keys import SingleKey
from hermes.providers.model_catalogue import Vendor, shipped_catalogue

PLAIN = """
import sys
from pathlib import Path
from hermes.credentials.accounts import Accounts
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.model_catalogue import shipped_catalogue

config = load(Home(Path(sys.argv[1])), env={"OPENROUTER_API_KEY": "sk-or-1234"})
accounts = Accounts(config, world=World(), http=HttpClient(), env={})
keys = accounts.keys_for("openrouter", shipped_catalogue().vendors["openrouter"])
assert keys.credential.key == "sk-or-1234"
loaded = [name for name in sys.modules if name.startswith("hermes.credentials.")]
print(*[name for name in loaded if name != "hermes.credentials.accounts"])
"""


def accounts(home: Home, env: Mapping[str, str], flags: dict[str, Any] | None = None) -> Accounts:
    config = load(home, flags=flags or {}, env=dict(env))
    return Accounts(config, world=World(), http=HttpClient(), env=env)


def vendor(name: str) -> Vendor:
    found = shipped_catalogue().vendor(name)
    assert found is not None
    return found


def test_one_key_stands_alone(home: Home) -> None:
    keys = accounts(home, {"OPENROUTER_API_KEY": "sk-or-1234"}).keys_for(
        "openrouter", vendor("openrouter")
    )
    assert isinstance(keys, SingleKey)
    assert (keys.credential.key, keys.credential.source) == ("sk-or-1234", "OPENROUTER_API_KEY")
    assert not home.root.exists()


def test_one_key_loads_only_the_accounts_module(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(home.root)], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []


async def test_numbered_variables_are_shared_out(home: Home) -> None:
    env = {"OPENROUTER_API_KEY": "sk-or-1", "OPENROUTER_API_KEY_2": "sk-or-2"}
    found = accounts(home, env)
    keys = found.keys_for("openrouter", vendor("openrouter"))
    assert isinstance(keys, SharedKeyPool)
    assert found.keys_for("openrouter", vendor("openrouter")) is keys
    rows = await found.rows("openrouter")
    assert [(row.label, row.source) for row in rows] == [
        ("OPENROUTER_API_KEY", "env:OPENROUTER_API_KEY"),
        ("OPENROUTER_API_KEY_2", "env:OPENROUTER_API_KEY_2"),
    ]


async def test_keys_added_by_hand_are_shared_out_with_the_rest(home: Home) -> None:
    env = {"OPENROUTER_API_KEY": "sk-or-1"}
    found = accounts(home, env)
    await found.admin("openrouter").add_key("sk-or-added", label="spare")
    assert isinstance(found.keys_for("openrouter", vendor("openrouter")), SharedKeyPool)
    # A file that says nothing of a provider does not concern it.
    deepseek = accounts(home, {"DEEPSEEK_API_KEY": "sk-ds-1"})
    assert isinstance(deepseek.keys_for("deepseek", vendor("deepseek")), SingleKey)


def test_the_settings_come_before_the_environment(home: Home) -> None:
    env = {"OPENROUTER_API_KEY": "sk-or-1", "MY_KEY": "sk-mine", "MY_KEY_2": "sk-mine-2"}
    found = accounts(home, env, {"providers.openrouter.api_key": "sk-config"})
    keys = found.keys_for("openrouter", vendor("openrouter"))
    assert isinstance(keys, SingleKey)
    assert (keys.credential.key, keys.credential.source) == ("sk-config", "")
    named = accounts(home, env, {"providers.openrouter.key_env": "MY_KEY"})
    lent = named.environment_keys("openrouter", vendor("openrouter"))
    assert [each.key for each in lent] == ["sk-mine", "sk-mine-2"]


def test_a_server_of_ones_own_needs_no_key(home: Home) -> None:
    keys = accounts(home, {}).keys_for("custom", vendor("custom"))
    assert isinstance(keys, SingleKey)
    assert keys.credential.key == ""


def test_each_endpoint_of_ones_own_has_its_own_keys() -> None:
    assert pool_name("my-box", vendor("custom")) == "custom:my-box"
    assert pool_name("or", vendor("or")) == "openrouter"


async def test_the_secrets_of_the_file_are_known_to_those_who_hide_them(home: Home) -> None:
    found = accounts(home, {})
    assert found.secret_values() == frozenset()
    await found.admin("xai").add_key("xai-added")
    assert found.secret_values() == {"xai-added"}
    assert found.active_provider() == ""


async def test_the_overview_shows_who_has_keys(home: Home, tmp_path: Path) -> None:
    gh = tmp_path / ".config/gh/hosts.yml"
    gh.parent.mkdir(parents=True)
    gh.write_text("github.com:\n  oauth_token: gho_1234\n")
    env = {"DEEPSEEK_API_KEY": "sk-ds-1", "GH_TOKEN": "gho_9999", "HOME": str(tmp_path)}
    settings = {
        "providers.my-box.base_url": "http://127.0.0.1:1",
        "providers.my-box.api_key": "k1234",
    }
    async with open_accounts(load(home, flags=settings, env=env), env=env) as found:
        await found.admin("xai").add_key("xai-added")
        assert [row.provider for row in await found.rows()] == [
            "xai",
            "deepseek",
            "custom:my-box",
            "copilot",
        ]


async def test_an_unknown_provider_is_reported_with_names_that_come_near(home: Home) -> None:
    with pytest.raises(NotFound) as caught:
        await accounts(home, {}).rows("deepsek")
    assert "deepseek" in caught.value.near
