"""What is sent to each vendor, as files to compare with.

`python -m tests.providers.golden_requests --write` makes the files anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.model_catalogue import ModelCatalogue, Vendor, shipped_catalogue
from hermes.providers.pipeline import wire_format
from hermes.providers.profile import WireName
from hermes.providers.profile_building import RequestOptions
from hermes.providers.wire.format import ImageLoader

FOLDER = Path(__file__).with_name("golden")
# Models beside the vendor's default one that are asked in another way, with their keys.
MORE: dict[str, tuple[tuple[str, str], ...]] = {
    "openrouter": (("anthropic/claude-sonnet-4.5", ""), ("deepseek-v4-pro:nitro", "")),
    "anthropic": (("claude-sonnet-4.5", ""), ("claude-opus-4.6", "sk-ant-oat01-0123456789")),
    "openai-api": (("gpt-4.1", ""),),
    "copilot": (("gpt-5-mini", ""), ("claude-sonnet-4.5", "")),
    "opencode-zen": (("gpt-5.4", ""), ("kimi-k2.6", "")),
    "opencode-go": (("minimax-m2.5", ""), ("qwen3.7-plus", "")),
    "deepseek": (("deepseek/deepseek-flash", ""),),
    "kimi-coding": (("kimi-k2.6", ""), ("kimi-k2.7-code", ""), ("kimi-k3", "sk-kimi-0123456789")),
    "gemini": (("google/gemini-2.5-pro", ""),),
    "vertex": (("claude-sonnet-4.5", ""),),
    "xai": (("grok-4-fast-non-reasoning", ""), ("grok-4", "")),
}
ADDRESSES = {
    "azure-foundry": "https://mine.services.ai.azure.com/openai/v1",
    "vertex": "https://aiplatform.googleapis.com/v1/projects/p/locations/global",
    "custom": "http://127.0.0.1:11434/v1",
}
KEY = "sk-golden-0123456789"
TOOL = ToolSpec(
    name="look",
    description="Look at something.",
    parameters={
        "type": "object",
        "properties": {
            "at": {"type": "string", "pattern": "^/", "description": "What to look at."},
            "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "how": {"enum": ["near", "far"], "type": "string"},
        },
        "required": ["at"],
        "additionalProperties": False,
    },
)
OPTIONS = RequestOptions(
    routing={"sort": "price", "only": (), "order": ("a", "b"), "zdr": True, "data_collection": ""},
    response_cache_seconds=300,
    service_tier="auto",
    temperature=0.5,
    num_ctx=65_536,
)

# A thought as each wire seals it.
SEALED: dict[WireName, JsonObject] = {
    "chat": {
        "reasoning_content": "Look first.",
        "reasoning_details": [{"type": "reasoning.text", "text": "Look first."}],
        "extra_content": {"0": {"google": {"thought_signature": "c2lnbmVk"}}},
    },
    "responses": {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Look first."}],
        "encrypted_content": "c2VhbGVk",
    },
    "messages": {"type": "thinking", "thinking": "Look first.", "signature": "c2lnbmVk"},
}


def requests_of(catalogue: ModelCatalogue, vendor: Vendor) -> list[JsonObject]:
    asked = ((vendor.default_model or "some-model", ""), *MORE.get(vendor.name, ()))
    return [_request(catalogue, vendor, model, key or KEY) for model, key in asked]


def golden(vendor: Vendor) -> str:
    """What the vendor's file says, or would say."""
    return json.dumps(requests_of(shipped_catalogue(), vendor), indent=1, ensure_ascii=False) + "\n"


def _request(catalogue: ModelCatalogue, vendor: Vendor, model: str, key: str) -> JsonObject:
    endpoint = catalogue.endpoint(
        vendor,
        model,
        key=key,
        url=ADDRESSES.get(vendor.name, ""),
        server="ollama" if vendor.name == "custom" else "",
        options=OPTIONS,
    )
    wire = wire_format(endpoint.wire)(
        endpoint, endpoint.profile, cache_ttl="5m", pictures=ImageLoader()
    )
    messages = _conversation(endpoint.wire, endpoint.issuer)
    prompt = Prompt(system="Be brief.", messages=messages, tools=(TOOL,), effort="high")
    body = wire.encode(prompt, messages)
    headers = {name: value.replace(key, "KEY") for name, value in sorted(wire.headers.items())}
    return {"url": wire.url, "headers": headers, "body": json.loads(body)}


def _conversation(wire: WireName, issuer: str) -> tuple[Message, ...]:
    call = ToolCall(id="call_1", name="look", arguments={"at": "/"})
    thought = Reasoning(text="Look first.", sealed=SEALED[wire], issuer=issuer)
    result = ToolResult(call_id="call_1", name="look", parts=(Text(text="a wall"),))
    return (
        user_says("What is there?"),
        AssistantMessage(parts=(thought, call), stop="calls"),
        ToolMessage(results=(result,)),
    )


if __name__ == "__main__" and "--write" in sys.argv:
    FOLDER.mkdir(exist_ok=True)
    for name, known in shipped_catalogue().vendors.items():
        (FOLDER / f"{name}.json").write_text(golden(known), "utf-8")
