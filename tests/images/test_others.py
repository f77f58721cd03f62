"""xAI, OpenRouter, the Codex backend and the Stable Diffusion web UI."""

from __future__ import annotations

import base64
import json

import pytest

from hermes.core.errors import ProviderError
from hermes.images.studio import Studio
from hermes.providers.keys import Credential
from tests.images.asking import bundled, drawn, fault
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, PNG, Fake, Reply

DATA = "data:image/png;base64," + B64
XAI = {"XAI_API_KEY": "xai-0123456789"}
ROUTER = {"OPENROUTER_API_KEY": "sk-or-0123456789"}


async def test_xai_gives_addresses_that_are_saved(make: MakeStudio, fake: Fake) -> None:
    row = {"url": f"{fake.url}/tmp/1.png", "revised_prompt": "A corgi."}
    fake.on("POST /v1/images/generations", Reply({"data": [row]}))
    fake.on("GET /tmp/1.png", Reply(PNG))
    xai = bundled(make(XAI, xai={"resolution": "2k"}), "xai", fake, path="/v1")
    answer = await xai.agenerate("a corgi", "portrait")
    assert (drawn(answer), answer["revised_prompt"]) == (PNG, "A corgi.")
    assert fake.asked[0].json == {
        "model": "grok-imagine-image",
        "prompt": "a corgi",
        "n": 1,
        "aspect_ratio": "9:16",
        "resolution": "2k",
    }
    assert xai.seconds == 120


async def test_xai_changes_one_picture_or_several(make: MakeStudio, fake: Fake) -> None:
    fake.on("POST /v1/images/edits", Reply({"data": [{"b64_json": B64}]}))
    xai = bundled(make(XAI), "xai", fake, path="/v1")
    assert drawn(await xai.agenerate("a hat", image_url=DATA)) == PNG
    shown = {"type": "image_url", "url": DATA}
    assert fake.asked[-1].json["image"] == shown
    other = "data:image/gif;base64," + base64.b64encode(b"GIF89a.......").decode()
    await xai.agenerate("a hat", image_url=DATA, reference_image_urls=[other])
    assert fake.asked[-1].json["images"] == [shown, {"type": "image_url", "url": other}]
    assert "image" not in fake.asked[-1].json


async def test_xai_says_no_in_its_own_shape(make: MakeStudio, fake: Fake) -> None:
    said = {"code": "Client specified an invalid argument", "error": "Content violates moderation"}
    fake.on("POST /images/generations", Reply(said, 400))
    assert fault(await bundled(make(XAI), "xai", fake).agenerate("x"))[0] == "content_policy"


def message(**fields: object) -> Reply:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **fields}}
    return Reply({"id": "gen-1", "choices": [choice], "usage": {"cost": 0.0387}})


async def test_openrouter_answers_a_chat_with_a_picture(make: MakeStudio, fake: Fake) -> None:
    images = [{"type": "image_url", "image_url": {"url": DATA}}]
    fake.on("POST /api/v1/chat/completions", message(content="", images=images))
    router = bundled(make(ROUTER), "openrouter", fake, path="/api/v1")
    answer = await router.agenerate("a corgi", image_url=DATA)
    assert (drawn(answer), answer["cost_usd"]) == (PNG, 0.0387)
    assert fake.asked[0].json == {
        "model": "openai/gpt-5.4-image-2",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a corgi"},
                    {"type": "image_url", "image_url": {"url": DATA}},
                ],
            }
        ],
        "modalities": ["image", "text"],
        "image_config": {"aspect_ratio": "16:9"},
        "usage": {"include": True},
    }


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (message(content="I cannot draw that; it was flagged."), "content_policy", "flagged"),
        (message(content="A corgi is a dog."), "api_error", "A corgi is a dog."),
        (Reply({"error": {"code": 502, "message": "Provider returned error"}}), "", "returned"),
        (Reply({"error": {"code": 402, "message": "Insufficient credits"}}, 402), "api_error", "c"),
        (Reply({"choices": []}), "api_error", "returned no image"),
    ],
)
async def test_openrouter_answers_without_a_picture(
    make: MakeStudio, fake: Fake, reply: Reply, kind: str, words: str
) -> None:
    fake.on("POST /chat/completions", reply)
    found, said = fault(await bundled(make(ROUTER), "openrouter", fake).agenerate("a corgi"))
    assert (found, words in said) == (kind or "provider_error", True), said


def logged_in(studio: Studio, *, fails: bool = False) -> Studio:
    async def login(name: str) -> Credential | None:
        if fails:
            raise ProviderError("The login has ended.", reason="auth")
        headers = {"chatgpt-account-id": "acc-1"}
        return Credential(id="1", provider=name, key="oauth-token-123", headers=headers)

    studio.login = login
    studio.logged_in = lambda name: name == "openai-codex"
    return studio


def stream(*events: object) -> Reply:
    lines = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(lines.encode(), kind="text/event-stream")


async def test_the_codex_backend_calls_its_image_tool(make: MakeStudio, fake: Fake) -> None:
    item = {"type": "image_generation_call", "status": "completed", "result": B64}
    fake.on(
        "POST /codex/responses",
        stream(
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.image_generation_call.partial_image", "partial_image_b64": "x"},
            {"type": "response.output_item.done", "item": {"type": "reasoning"}},
            {"type": "response.output_item.done", "item": {**item, "revised_prompt": "A corgi"}},
            {"type": "response.completed"},
        ),
    )
    codex = bundled(logged_in(make()), "openai-codex", fake, path="/codex")
    answer = await codex.agenerate("a corgi", "square", image_url=DATA, model="gpt-image-2-low")
    assert (drawn(answer), answer["revised_prompt"]) == (PNG, "A corgi")
    asked = fake.asked[0]
    assert asked.headers["authorization"] == "Bearer oauth-token-123"
    assert asked.headers["chatgpt-account-id"] == "acc-1"
    assert asked.json["tools"] == [
        {
            "type": "image_generation",
            "model": "gpt-image-2",
            "size": "1024x1024",
            "quality": "low",
            "output_format": "png",
        }
    ]
    assert asked.json["input"][0]["content"] == [
        {"type": "input_text", "text": "a corgi"},
        {"type": "input_image", "image_url": DATA},
    ]
    assert (asked.json["stream"], asked.json["store"]) == (True, False)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (
            stream(
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "moderation_blocked", "message": "moderation"}},
                }
            ),
            "content_policy",
        ),
        (stream({"type": "response.completed"}), "api_error"),
        (Reply({"detail": "Unauthorized"}, 401), "auth_required"),
        (
            Reply({"error": {"type": "usage_limit_reached", "message": "limit"}}, 429),
            "rate_limited",
        ),
    ],
)
async def test_the_codex_backend_says_no(
    make: MakeStudio, fake: Fake, reply: Reply, kind: str
) -> None:
    fake.on("POST /responses", reply)
    assert fault(await bundled(logged_in(make()), "openai-codex", fake).agenerate("x"))[0] == kind


async def test_the_codex_backend_needs_a_login(make: MakeStudio, fake: Fake) -> None:
    kind, words = fault(await bundled(make(), "openai-codex", fake).agenerate("x"))
    assert kind == "auth_required"
    assert "hermes login openai-codex" in words
    ended = bundled(logged_in(make(), fails=True), "openai-codex", fake)
    assert fault(await ended.agenerate("x"))[0] == "auth_required"
    assert fake.asked == []


async def test_the_web_ui_draws_and_changes(make: MakeStudio, fake: Fake) -> None:
    good = Reply({"images": [B64], "parameters": {}, "info": "{}"})
    fake.on("POST /sdapi/v1/txt2img", good)
    fake.on("POST /sdapi/v1/img2img", good)
    own = {"base_url": fake.url, "model": "sdxl", "params": {"sampler_name": "Euler a"}}
    ui = bundled(make({"SDWEBUI_CREDENTIALS": "me:secret"}, sdwebui=own), "sdwebui")
    assert drawn(await ui.agenerate("a corgi", "square", seed=4)) == PNG
    assert fake.asked[0].json == {
        "prompt": "a corgi",
        "negative_prompt": "",
        "width": 1024,
        "height": 1024,
        "steps": 20,
        "seed": 4,
        "batch_size": 1,
        "n_iter": 1,
        "override_settings": {"sd_model_checkpoint": "sdxl"},
        "sampler_name": "Euler a",
    }
    pair = base64.b64encode(b"me:secret").decode()
    assert fake.asked[0].headers["authorization"] == f"Basic {pair}"
    assert drawn(await ui.agenerate("a hat", image_url=DATA)) == PNG
    assert fake.asked[1].json["init_images"] == [B64]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply({"detail": [{"loc": ["body"], "msg": "bad sampler"}]}, 422), "invalid_argument"),
        (Reply({"error": "OutOfMemoryError", "detail": "", "errors": "CUDA"}, 500), "api_error"),
        (Reply({"detail": "Not Found"}, 404), "invalid_argument"),
        (Reply({"images": []}), "api_error"),
    ],
)
async def test_the_web_ui_says_no(make: MakeStudio, fake: Fake, reply: Reply, kind: str) -> None:
    fake.on("POST /sdapi/v1/txt2img", reply)
    ui = bundled(make(sdwebui={"base_url": fake.url}), "sdwebui")
    assert fault(await ui.agenerate("a corgi"))[0] == kind
