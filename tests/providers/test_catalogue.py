"""Every vendor that is promised, and how users add to the catalogue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.providers.model_catalogue import PACKED, Vendor, load_catalogue, shipped_catalogue
from hermes.providers.profile import WireName
from scripts.generate_catalogue import packed

CHAT: WireName = "chat"
# name, an alias, address, variables of keys, variable of the address, format
TABLE: list[tuple[str, str, str, str, str, WireName]] = [
    ("openrouter", "or", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "", CHAT),
    (
        "nous", "nous-portal", "https://inference-api.nousresearch.com/v1", "NOUS_API_KEY",
        "NOUS_BASE_URL", CHAT,
    ),
    (
        "anthropic", "claude", "https://api.anthropic.com", "ANTHROPIC_API_KEY ANTHROPIC_TOKEN",
        "ANTHROPIC_BASE_URL", "messages",
    ),
    (
        "openai-api", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL",
        "responses",
    ),
    ("openai-codex", "codex", "https://chatgpt.com/backend-api/codex", "", "", "responses"),
    (
        "copilot", "github-copilot", "https://api.githubcopilot.com",
        "COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN", "COPILOT_API_BASE_URL", CHAT,
    ),
    (
        "ai-gateway", "vercel", "https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY",
        "AI_GATEWAY_BASE_URL", CHAT,
    ),
    (
        "alibaba", "dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL", CHAT,
    ),
    (
        "alibaba-coding-plan", "", "https://coding-intl.dashscope.aliyuncs.com/v1",
        "ALIBABA_CODING_PLAN_API_KEY DASHSCOPE_API_KEY", "", CHAT,
    ),
    ("kilocode", "kilo", "https://api.kilo.ai/api/gateway", "KILOCODE_API_KEY", "", CHAT),
    (
        "opencode-zen", "zen", "https://opencode.ai/zen/v1", "OPENCODE_ZEN_API_KEY",
        "OPENCODE_ZEN_BASE_URL", CHAT,
    ),
    (
        "opencode-go", "go", "https://opencode.ai/zen/go/v1", "OPENCODE_GO_API_KEY",
        "OPENCODE_GO_BASE_URL", CHAT,
    ),
    ("huggingface", "hf", "https://router.huggingface.co/v1", "HF_TOKEN", "HF_BASE_URL", CHAT),
    (
        "deepseek", "", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL",
        CHAT,
    ),
    (
        "zai", "zhipu", "https://api.z.ai/api/paas/v4", "GLM_API_KEY ZAI_API_KEY Z_AI_API_KEY",
        "GLM_BASE_URL", CHAT,
    ),
    (
        "kimi-coding", "kimi", "https://api.moonshot.ai/v1", "KIMI_API_KEY KIMI_CODING_API_KEY",
        "KIMI_BASE_URL", CHAT,
    ),
    ("kimi-coding-cn", "", "https://api.moonshot.cn/v1", "KIMI_CN_API_KEY", "", CHAT),
    (
        "minimax", "", "https://api.minimax.io/anthropic", "MINIMAX_API_KEY", "MINIMAX_BASE_URL",
        "messages",
    ),
    (
        "minimax-cn", "", "https://api.minimaxi.com/anthropic", "MINIMAX_CN_API_KEY",
        "MINIMAX_CN_BASE_URL", "messages",
    ),
    (
        "gemini", "google", "https://generativelanguage.googleapis.com/v1beta",
        "GOOGLE_API_KEY GEMINI_API_KEY", "GEMINI_BASE_URL", CHAT,
    ),
    ("xai", "grok", "https://api.x.ai/v1", "XAI_API_KEY", "XAI_BASE_URL", "responses"),
    (
        "nvidia", "nim", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY",
        "NVIDIA_BASE_URL", CHAT,
    ),
    (
        "xiaomi", "mimo", "https://api.xiaomimimo.com/v1", "XIAOMI_API_KEY", "XIAOMI_BASE_URL",
        CHAT,
    ),
    ("qwen-oauth", "", "https://portal.qwen.ai/v1", "", "", CHAT),
    ("ollama-cloud", "", "https://ollama.com/v1", "OLLAMA_API_KEY", "OLLAMA_BASE_URL", CHAT),
    ("azure-foundry", "", "", "AZURE_FOUNDRY_API_KEY", "AZURE_FOUNDRY_BASE_URL", CHAT),
    ("lmstudio", "", "http://127.0.0.1:1234/v1", "LM_API_KEY", "LM_BASE_URL", CHAT),
    ("custom", "ollama", "", "OPENAI_API_KEY", "OPENAI_BASE_URL", CHAT),
]  # fmt: skip
PLAIN = (
    "arcee", "stepfun", "gmi", "fireworks", "deepinfra", "novita", "upstage", "tencent-tokenhub",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "alias", "url", "keys", "url_env", "wire"), TABLE, ids=[row[0] for row in TABLE]
)
def test_a_vendor_is_known_with_its_addresses_and_keys(
    name: str, alias: str, url: str, keys: str, url_env: str, wire: WireName
) -> None:
    vendor = shipped_catalogue().vendors[name]
    found = (vendor.url, " ".join(vendor.keys), vendor.url_env, vendor.wire)
    assert found == (url, keys, url_env, wire)
    assert shipped_catalogue().vendor(alias or name) == vendor


@pytest.mark.parametrize("name", PLAIN)
def test_plain_vendors_have_an_address_and_a_key_of_their_name(name: str) -> None:
    vendor = shipped_catalogue().vendors[name]
    assert vendor.url.startswith("https://")
    assert vendor.keys[0] == f"{name.upper().replace('-', '_')}_API_KEY"


def test_no_name_means_two_vendors() -> None:
    vendors = shipped_catalogue().vendors.values()
    names = [name for vendor in vendors for name in (vendor.name, *vendor.aliases)]
    assert sorted(names) == sorted(set(names))


def test_keys_are_looked_for_in_the_order_of_the_table() -> None:
    names = [name for name in shipped_catalogue().vendors if shipped_catalogue().vendors[name].auto]
    assert names[:4] == ["openrouter", "nous", "anthropic", "openai-api"]
    assert {"copilot", "lmstudio", "custom", "bedrock"}.isdisjoint(names)


def test_all_vendors_are_told_who_is_asking_and_nobody_else_is_named() -> None:
    for vendor in shipped_catalogue().vendors.values():
        headers = [vendor.headers, *(route.headers for route in vendor.routes)]
        said = " ".join(f"{name} {value}" for held in headers for name, value in held.items())
        for other in (
            "vscode",
            "claude-code",
            "claude-cli",
            "codex_cli",
            "opencode/",
            "GitHubCopilot",
        ):
            assert other.lower() not in said.lower()
    assert shipped_catalogue().vendors["openrouter"].headers["X-Title"] == "Hermes Agent"


@pytest.mark.parametrize(
    ("vendor", "model", "wire"),
    [
        ("opencode-zen", "claude-opus-4-6", "messages"),
        ("opencode-zen", "gpt-5.2", "responses"),
        ("opencode-zen", "glm-4.6", "chat"),
        ("opencode-go", "minimax-m2.5", "messages"),
        ("opencode-go", "qwen3.7-plus", "messages"),
        ("opencode-go", "kimi-k2.6", "chat"),
        ("copilot", "gpt-5.4", "responses"),
        ("copilot", "gpt-5-mini", "chat"),
        ("copilot", "claude-sonnet-4.5", "chat"),
    ],
)
def test_some_vendors_speak_another_format_with_some_models(
    vendor: str, model: str, wire: WireName
) -> None:
    assert shipped_catalogue().endpoint(shipped_catalogue().vendors[vendor], model).wire == wire


def test_a_key_of_kimis_subscription_leads_to_another_address_and_format() -> None:
    kimi = shipped_catalogue().vendors["kimi-coding"]
    coding = shipped_catalogue().endpoint(
        kimi, "kimi-k3", key="sk-kimi-1234", key_source="KIMI_API_KEY"
    )
    plain = shipped_catalogue().endpoint(kimi, "kimi-k3", key="sk-1234", key_source="KIMI_API_KEY")
    assert (coding.url, coding.wire, coding.key) == (
        "https://api.kimi.com/coding", "messages", "sk-kimi-1234",
    )  # fmt: skip
    assert coding.profile.included and not plain.profile.included
    assert (plain.url, plain.wire) == ("https://api.moonshot.ai/v1", "chat")


def test_geminis_address_always_ends_with_the_compatible_path() -> None:
    gemini = shipped_catalogue().vendors["gemini"]
    for url in ("", "https://proxy.test/v1beta", "https://proxy.test/v1beta/openai/"):
        assert (
            shipped_catalogue()
            .endpoint(gemini, "gemini-3.8-flash", url=url)
            .url.rstrip("/")
            .endswith("/v1beta/openai")
        )


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("claude-opus-4.6", "window", 1_000_000),
        ("claude-haiku-4-5", "reasons", False),
        ("claude-haiku-5-5", "thinking", "adaptive"),
        ("o3", "window", 200_000),
        ("openai/o4-mini", "output_field", "max_completion_tokens"),
        ("gpt-5.4-mini", "window", 400_000),
        ("gpt-5.4", "window", 1_050_000),
        ("gpt-6.1-sol", "efforts", ("low", "medium", "high", "xhigh", "max")),
        ("glm-4.6v", "images", True),
        ("glm-4.6", "images", False),
        ("deepseek-r1:8b", "tool_calls", "deepseek"),
        ("hermes-4-70b", "tool_calls", "hermes"),
    ],
)
def test_families_add_up_from_general_to_special(model: str, field: str, value: object) -> None:
    assert getattr(shipped_catalogue().family(model), field) == value


def test_a_vendors_own_word_on_a_family_counts_there_only() -> None:
    codex, api = (
        shipped_catalogue().vendors["openai-codex"],
        shipped_catalogue().vendors["openai-api"],
    )
    assert shipped_catalogue().endpoint(codex, "openai/gpt-5.4").profile.window == 272_000
    assert shipped_catalogue().endpoint(api, "gpt-5.4").profile.window == 1_050_000


def test_the_packed_catalogue_is_what_the_files_say() -> None:
    assert PACKED.read_bytes() == packed(), "run scripts/generate_catalogue.py"


def test_the_shipped_catalogue_is_read_without_a_toml_parser() -> None:
    code = (
        "import sys; from hermes.providers.model_catalogue import shipped_catalogue; "
        "shipped_catalogue(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert {"tomllib", "asyncio", "ssl"}.isdisjoint(done.stdout.split())


def test_a_home_without_a_file_of_vendors_has_the_shipped_ones(tmp_path: Path) -> None:
    assert load_catalogue(tmp_path / "vendors.toml") is shipped_catalogue()


def test_a_file_of_vendors_changes_only_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "vendors.toml"
    path.write_text(
        """
        [vendors.openrouter]
        default_model = "qwen/qwen3-coder"
        [vendors.acme]
        url = "https://api.acme.test/v1"
        keys = ["ACME_API_KEY"]
        [[families]]
        match = ["claude"]
        vendors = ["acme"]
        window = 5_000
        [[sheets]]
        version = "mine"
        vendors = ["acme"]
        [sheets.models]
        "claude-opus-4.6" = { input = 1, output = 2 }
        """
    )
    catalogue = load_catalogue(path)
    router, acme = catalogue.vendors["openrouter"], catalogue.vendors["acme"]
    assert router.default_model == "qwen/qwen3-coder"
    assert router.keys == ("OPENROUTER_API_KEY",) and router.effort == "envelope"
    profile = catalogue.endpoint(acme, "claude-opus-4-6").profile
    assert profile.window == 5_000
    assert profile.price is not None
    assert (profile.price.output, profile.price.version) == (2, "mine")


@pytest.mark.parametrize("text", ["[vendors", "vendors = 5", "[[sheets]]\nmodels = 5"])
def test_a_broken_file_of_vendors_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vendors.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="vendor list is invalid"):
        load_catalogue(path)


def test_settings_of_a_model_are_laid_over_what_is_known() -> None:
    custom = shipped_catalogue().vendors["custom"]
    settings = {
        "context_length": 9_000,
        "max_output_tokens": None,
        "timeout_seconds": 5,
        "vision": False,
        "tool_calls": "",
        "price_input": 2.0,
        "extra": {"seed": 1},
    }
    made = shipped_catalogue().endpoint(
        custom, "qwen3", url="http://127.0.0.1:1/v1", overrides=settings
    )
    profile = made.profile
    assert (profile.window, profile.max_output, profile.images) == (9_000, None, False)
    assert profile.tool_calls == "qwen"
    assert profile.price is not None and profile.price.input == 2.0
    assert (profile.price_source, profile.included) == ("user_override", False)
    assert profile.extra == {"seed": 1}
    native = {"tool_calls": "mistral"}
    made = shipped_catalogue().endpoint(
        custom, "qwen3", url="http://127.0.0.1:1/v1", overrides=native
    )
    assert made.profile.tool_calls == "mistral"


def owners(vendor: Vendor) -> list[str]:
    return [
        v.name for v in shipped_catalogue().vendors.values() if vendor.own_hosts() & v.own_hosts()
    ]


def test_hosts_are_shared_only_by_services_of_one_vendor() -> None:
    shared = {tuple(owners(v)) for v in shipped_catalogue().vendors.values() if len(owners(v)) > 1}
    assert shared == {("opencode-zen", "opencode-go")}


@pytest.mark.parametrize(
    ("provider", "model", "url", "key", "expected"),
    [
        ("openrouter", "claude-sonnet-4.6", "", "sk-or-1234",
         ("openrouter", "chat", "openrouter.ai", "anthropic/claude-sonnet-4.6", True)),
        ("openai", "gpt-5.2", "", "sk-1234",
         ("openai-api", "responses", "api.openai.com", "gpt-5.2", True)),
        ("anthropic", "claude-sonnet-4.6", "", "sk-ant-1234",
         ("anthropic", "messages", "api.anthropic.com", "claude-sonnet-4-6", True)),
        ("custom", "qwen3:8b", "http://localhost:11434/v1", "sk-1234",
         ("custom", "chat", "localhost", "qwen3:8b", False)),
        ("custom", "m", "https://x.test/anthropic", "",
         ("custom", "messages", "x.test", "m", False)),
        ("kimi", "kimi-k2.6", "", "sk-kimi-1234",
         ("kimi-coding", "messages", "api.kimi.com", "kimi-k2.6", True)),
        ("zai", "z-ai/glm-5.2", "", "1234",
         ("zai", "chat", "api.z.ai", "glm-5.2", True)),
    ],
)  # fmt: skip
def test_a_choice_leads_to_one_vendor_format_host_and_name(
    provider: str, model: str, url: str, key: str, expected: tuple[str, str, str, str, bool]
) -> None:
    vendor = shipped_catalogue().vendor(provider)
    assert vendor is not None
    at = shipped_catalogue().endpoint(vendor, model, url=url, key=key, key_source=vendor.keys[0])
    assert (at.vendor, at.wire, at.host, at.model, bool(at.key)) == expected
