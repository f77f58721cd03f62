"""No key goes anywhere but to its own vendor, or to an address that the user gave it for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from hermes.net.addresses import host_of, is_local
from hermes.providers.endpoint import (
    LOGIN,
    UrlSource,
    is_plausible_key,
    key_variable_for_host,
    may_send,
)
from hermes.providers.model_catalogue import Vendor, shipped_catalogue
from hermes.providers.wire.format import request_headers

CATALOGUE = shipped_catalogue()
VENDORS = CATALOGUE.vendors
VARIABLES = sorted({name for vendor in VENDORS.values() for name in vendor.keys})
URLS = sorted(
    {vendor.url for vendor in VENDORS.values() if vendor.url}
    | {route.url for vendor in VENDORS.values() for route in vendor.routes if route.url}
)

SOURCES: tuple[UrlSource, ...] = ("", "env", "config")


def owners(url: str) -> list[str]:
    """The variables whose keys belong to the host."""
    host = host_of(url)
    return [name for v in VENDORS.values() if host in v.own_hosts() for name in v.keys]


def tried(vendor: Vendor, url: str, strangers: Iterator[str]) -> set[str]:
    """The variables that may matter to the vendor at this address, and two that never do."""
    return {*vendor.keys, *owners(url), *itertools.islice(strangers, 2)}


@pytest.mark.parametrize("source", SOURCES)
def test_no_request_to_a_vendors_host_carries_the_key_of_another(
    source: UrlSource, pytestconfig: pytest.Config
) -> None:
    """All vendors at every address of the outside world, with their own keys, with those of the
    host and with some of others, in a long run with the key of every variable."""
    sent = set()
    outside = [url for url in URLS if not is_local(host_of(url))]
    whole, strangers = pytestconfig.getoption("--slow"), itertools.cycle(VARIABLES)
    for vendor, url in itertools.product(VENDORS.values(), outside):
        for variable in VARIABLES if whole else tried(vendor, url, strangers):
            endpoint = CATALOGUE.endpoint(
                vendor, "m", key="sk-0123456789", key_source=variable, url=url, url_source=source
            )
            headers = request_headers(endpoint)
            if any("sk-0123456789" in value for value in headers.values()):
                assert variable in owners(endpoint.url), (vendor.name, variable, endpoint.url)
                sent.add(variable)
    # The keys of servers and resources of one's own have no shipped address there.
    assert sent == set(VARIABLES) - {"AZURE_FOUNDRY_API_KEY", "LM_API_KEY"}


def test_a_machine_of_ones_own_gets_a_key_of_a_cloud_only_with_its_address() -> None:
    for vendor, variable in itertools.product(VENDORS.values(), VARIABLES):
        for source in SOURCES:
            sent = may_send(
                CATALOGUE, vendor, "http://127.0.0.1:1234/v1", key_source=variable,
                url_source=source,
            )  # fmt: skip
            paired = source == "env" and variable in vendor.keys
            assert sent is (paired or (vendor.name, variable) == ("lmstudio", "LM_API_KEY"))


def test_without_any_address_of_the_user_each_key_stays_at_home() -> None:
    for vendor, variable in itertools.product(VENDORS.values(), VARIABLES):
        if vendor.url:
            endpoint = CATALOGUE.endpoint(vendor, "m", key="sk-012345", key_source=variable)
            assert bool(endpoint.key) == (variable in vendor.keys)


@pytest.mark.parametrize(
    ("vendor", "variable", "url", "source", "may"),
    [
        ("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "", True),
        ("openrouter", "OPENROUTER_API_KEY", "http://openrouter.ai/api/v1", "", False),
        ("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai.evil.test/v1", "", False),
        ("openrouter", "OPENROUTER_API_KEY", "https://my-proxy.test/v1", "", False),
        ("openrouter", "OPENROUTER_API_KEY", "https://my-proxy.test/v1", "config", True),
        ("openrouter", "OPENROUTER_API_KEY", "https://api.openai.com/v1", "config", False),
        ("openrouter", "OPENAI_API_KEY", "https://openrouter.ai/api/v1", "config", False),
        ("openai-api", "OPENAI_API_KEY", "https://eu.proxy.test/v1", "env", True),
        ("custom", "OPENAI_API_KEY", "https://api.openai.com/v1", "config", True),
        ("custom", "OPENAI_API_KEY", "https://box.example/v1", "config", True),
        ("custom", "OPENAI_API_KEY", "http://localhost:11434/v1", "config", False),
        ("custom", "OPENAI_API_KEY", "http://localhost:11434/v1", "env", True),
        ("custom", "OPENAI_API_KEY", "https://api.deepseek.com/v1", "config", False),
        ("custom", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "config", False),
        ("custom", "TOGETHER_API_KEY", "https://api.together.xyz/v1", "config", True),
        ("custom", "TOGETHER_API_KEY", "https://api.other.xyz/v1", "config", False),
        ("custom", "OPENROUTER_API_KEY", "https://openrouter.example/v1", "config", False),
        ("custom", "", "http://localhost:11434/v1", "config", True),
        ("alibaba-coding-plan", "DASHSCOPE_API_KEY", "https://dashscope.aliyuncs.com/x", "config",
         True),
        ("openai-codex", LOGIN, "https://chatgpt.com/backend-api/codex", "", True),
        ("openai-codex", LOGIN, "https://proxy.test/codex", "config", False),
        ("copilot", LOGIN, "https://api.business.githubcopilot.com", "config", True),
        ("lmstudio", "LM_API_KEY", "http://127.0.0.1:1234/v1", "", True),
        ("lmstudio", "LM_API_KEY", "http://192.168.1.9:1234/v1", "env", True),
    ],
)  # fmt: skip
def test_where_a_key_may_go(
    vendor: str, variable: str, url: str, source: UrlSource, may: bool
) -> None:
    known = VENDORS[vendor]
    assert may_send(CATALOGUE, known, url, key_source=variable, url_source=source) is may


def test_a_key_that_looks_like_another_hosts_never_takes_a_vendors_variable() -> None:
    assert key_variable_for_host(CATALOGUE, "https://api.together.xyz/v1") == "TOGETHER_API_KEY"
    assert key_variable_for_host(CATALOGUE, "https://api.my-box.dev/v1") == "MY_BOX_API_KEY"
    for url in ("https://openai.net/v1", "https://api.openai.com/v1", "http://localhost/v1", ""):
        assert key_variable_for_host(CATALOGUE, url) == ""


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("sk-abc", True),
        ("abcd", True),
        ("abc", False),
        ("", False),
        ("changeme", False),
        ("your_api_key", False),
        ("YOUR_API_KEY", False),
        ("***", False),
        ("********", False),
        ("none", False),
        ("  none ", False),
        ("<your key>", False),
        ("${OPENAI_API_KEY}", False),
        ("xxxxxxxx", False),
        ("no-key-required", False),
    ],
)
def test_placeholders_are_no_keys(key: str, good: bool) -> None:
    assert is_plausible_key(key) is good


def test_only_local_addresses_are_not_encrypted() -> None:
    assert all(url.startswith("https://") or is_local(host_of(url)) for url in URLS)
