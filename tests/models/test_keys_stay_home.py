"""No request to one host carries the key of another, whatever is configured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import HermesError
from hermes.core.world import SystemClock
from hermes.models.model_ref import ModelRef
from hermes.models.resolver import Resolver
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_catalogue import Vendor, shipped_catalogue
from hermes.providers.model_servers import ModelListingCache

VENDORS = tuple(shipped_catalogue().vendors.values())
KEYS = {name: f"secret-of-{name.lower()}" for vendor in VENDORS for name in vendor.keys}
CLOUDS = tuple(vendor for vendor in VENDORS if vendor.url.startswith("https://"))


def resolver(tmp_path: Path, **flags: str) -> Resolver:
    given = {f"model.{name}": value for name, value in flags.items()}
    config = load(Home(tmp_path / "home"), flags=given, env=KEYS)
    return Resolver(
        config, shipped_catalogue(), ModelListingCache(tmp_path / "cache", SystemClock())
    )


def owners(endpoint: Endpoint) -> Iterator[Vendor]:
    return (vendor for vendor in VENDORS if endpoint.host in vendor.own_hosts())


def is_at_home(endpoint: Endpoint) -> bool:
    mine = {KEYS[name] for vendor in owners(endpoint) for name in vendor.keys}
    return not endpoint.key or endpoint.key in mine


@pytest.mark.parametrize("vendor", CLOUDS, ids=lambda vendor: vendor.name)
def test_a_vendor_gets_its_own_key(tmp_path: Path, vendor: Vendor) -> None:
    try:
        endpoint = resolver(tmp_path).endpoint(ModelRef(provider=vendor.name, model="m"))
    except HermesError:
        # Only a login opens it, or a file.
        assert not vendor.keys or vendor.login == "vertex"
        return
    assert endpoint.key in {KEYS[name] for name in vendor.keys}
    assert is_at_home(endpoint)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_no_vendor_sends_its_key_to_the_address_of_another(tmp_path: Path, vendor: Vendor) -> None:
    for other in CLOUDS:
        found = resolver(tmp_path, provider=vendor.name, base_url=other.url)
        try:
            endpoint = found.endpoint(ModelRef(provider=vendor.name, model="m"))
        except HermesError:
            continue  # refused rather than sent
        assert is_at_home(endpoint), f"{vendor.name} at {other.url}"


def test_keys_of_clouds_do_not_go_to_machines_of_ones_own(tmp_path: Path) -> None:
    for url in ("http://localhost:11434/v1", "http://10.0.0.5/v1", "http://box.local/v1"):
        for vendor in VENDORS:
            found = resolver(tmp_path, provider=vendor.name, base_url=url)
            endpoint = found.endpoint(ModelRef(provider=vendor.name, model="m"))
            assert endpoint.key == "", f"{vendor.name} at {url}"


def test_an_option_for_one_run_does_not_inherit_a_saved_address_or_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(
        "model: {provider: custom, base_url: 'https://gate.test/v1', api_key: key-of-gate}\n"
    )
    config = load(Home(home), flags={"model.provider": "openrouter"}, env=KEYS)
    found = Resolver(
        config, shipped_catalogue(), ModelListingCache(tmp_path / "cache", SystemClock())
    )
    endpoint = found.endpoint(ModelRef(provider="openrouter", model="x/y"))
    assert (endpoint.host, endpoint.key) == ("openrouter.ai", KEYS["OPENROUTER_API_KEY"])
    saved = found.endpoint(ModelRef(provider="custom", model="m"))
    assert (saved.host, saved.key) == ("gate.test", "key-of-gate")


def test_the_key_of_a_host_nobody_owns_is_found_by_its_name(tmp_path: Path) -> None:
    env = {"TOGETHER_API_KEY": "secret-of-together", "OPENAI_API_KEY": "secret-of-openai"}
    flags = {"model.base_url": "https://api.together.xyz/v1"}
    config = load(Home(tmp_path / "home"), flags=flags, env=env)
    found = Resolver(
        config, shipped_catalogue(), ModelListingCache(tmp_path / "cache", SystemClock())
    )
    endpoint = found.endpoint(ModelRef(provider="custom", model="m"))
    assert endpoint.key == "secret-of-together"
