from __future__ import annotations

import pytest

from hermes.core.errors import ConfigError
from hermes.net.addresses import is_local
from hermes.providers.model_catalogue import Vendor, parse_catalogue, shipped_catalogue
from hermes.providers.profile import WireName


def vendor(name: str) -> Vendor:
    found = shipped_catalogue().vendor(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("url", "wire"),
    [
        ("https://api.openai.com/v1", "responses"),
        ("https://api.openai.com.evil.test/v1", "chat"),
        ("https://evil.test/api.openai.com", "chat"),
        ("https://chatgpt.com/backend-api/codex", "responses"),
        ("https://chatgpt.com/else", "chat"),
        ("https://api.x.ai/v1", "responses"),
        ("https://api.anthropic.com", "messages"),
        ("https://x.test/anthropic", "messages"),
        ("https://x.test/anthropic/v1/", "messages"),
        ("https://x.test/anthropic/v2", "chat"),
        ("https://api.kimi.com/coding", "messages"),
        ("https://api.kimi.com/codings", "chat"),
        ("http://localhost:11434/v1", "chat"),
        ("", "chat"),
    ],
)
def test_the_address_decides_by_its_exact_host(url: str, wire: WireName) -> None:
    assert shipped_catalogue().wire(url, vendor=vendor("custom")) == wire


def test_an_explicit_mode_comes_first_and_a_fixed_vendor_second() -> None:
    catalogue = shipped_catalogue()
    url = "https://api.openai.com/v1"
    assert catalogue.wire(url, api_mode="chat_completions") == "chat"
    assert catalogue.wire(url, api_mode="nonsense") == "responses"
    assert catalogue.wire("https://proxy.test", vendor=vendor("anthropic")) == "messages"


def test_a_saved_responses_mode_is_not_believed_for_a_foreign_address() -> None:
    catalogue, mode = shipped_catalogue(), "codex_responses"
    assert catalogue.wire("http://x.test/v1", api_mode=mode, saved=True) == "chat"
    assert catalogue.wire("http://x.test/v1", api_mode=mode) == "responses"
    assert catalogue.wire("https://api.x.ai/v1", api_mode=mode, saved=True) == "responses"


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-3-opus", 200_000),
        ("anthropic/claude-sonnet-4.6", 1_000_000),
        ("claude-opus-4-6", 1_000_000),
        ("gpt-5-mini", 400_000),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-4o", 128_000),
        ("google/gemini-3-pro", 1_048_576),
        ("deepseek-chat", 128_000),
        ("qwen3:8b", 131_072),
        ("qwen3-coder:30b", 262_144),
        ("minimax-m2", 204_800),
        ("glm-4.6", 202_752),
        ("kimi-k2", 262_144),
        ("grok-3", 131_072),
        ("grok-4-fast", 256_000),
        ("llama3.1:8b", 131_072),
        ("nemotron-nano", 131_072),
        ("something-new", 256_000),
    ],
)
def test_families_know_their_windows(model: str, window: int) -> None:
    assert shipped_catalogue().family(model).window == window


def test_the_same_model_is_asked_in_the_way_of_each_vendor() -> None:
    name = "claude-sonnet-4-5"
    native = shipped_catalogue().endpoint(vendor("anthropic"), name).profile
    routed = shipped_catalogue().endpoint(vendor("openrouter"), f"anthropic/{name}").profile
    plain = shipped_catalogue().endpoint(vendor("custom"), name, url="http://x.test/v1").profile
    assert (native.marks, native.effort, native.replay) == ("native", "budget", "sealed")
    assert (routed.marks, routed.effort) == ("envelope", "envelope")
    assert routed.replay == "reasoning_details"
    assert (plain.marks, plain.effort, plain.replay) == ("off", "none", "none")


def test_newest_claudes_get_no_envelope_effort() -> None:
    profile = (
        shipped_catalogue().endpoint(vendor("openrouter"), "anthropic/claude-opus-4.6").profile
    )
    assert profile.effort == "none"


def test_bare_names_lose_vendor_and_dots() -> None:
    endpoint = shipped_catalogue().endpoint(vendor("claude"), "anthropic/claude-sonnet-4.6")
    assert endpoint.model == "claude-sonnet-4-6"
    assert endpoint.auth == "x-api-key"


def test_an_endpoint_without_an_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a base URL"):
        shipped_catalogue().endpoint(vendor("custom"), "m")


def test_users_override_what_is_known_of_a_model() -> None:
    overrides = {"window": 8192, "images": False}
    endpoint = shipped_catalogue().endpoint(
        vendor("custom"), "m", url="http://x/v1", overrides=overrides
    )
    assert (endpoint.profile.window, endpoint.profile.images) == (8192, False)
    with pytest.raises(ConfigError):
        shipped_catalogue().endpoint(
            vendor("custom"), "m", url="http://x/v1", overrides={"window": "big"}
        )


def test_a_new_vendor_is_only_data() -> None:
    text = """
    [vendors.acme]
    wire = "messages"
    url = "https://api.acme.test"
    keys = ["ACME_API_KEY"]
    [[families]]
    match = ["claude-sonnet-4-6"]
    window = 5_000
    """
    catalogue = parse_catalogue(text, over=shipped_catalogue())
    acme = catalogue.vendor("acme")
    assert acme is not None and catalogue.endpoint(acme, "m").wire == "messages"
    assert catalogue.family("claude-sonnet-4-6").window == 5_000
    assert catalogue.vendor("openrouter") == shipped_catalogue().vendor("openrouter")


@pytest.mark.parametrize("text", ["[vendors", "[vendors.x]\nurl = 5", "families = 5"])
def test_data_that_cannot_be_used_is_named(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_catalogue(text)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("192.168.1.5", True),
        ("10.0.0.1", True),
        ("172.16.0.1", True),
        ("172.32.0.1", False),
        ("100.64.0.1", True),
        ("100.63.0.1", False),
        ("box.local", True),
        ("host.docker.internal", True),
        ("ollama", True),
        ("api.openai.com", False),
        ("8.8.8.8", False),
        ("2001:db8::1", False),
    ],
)
def test_local_hosts_are_known(host: str, local: bool) -> None:
    assert is_local(host) == local
