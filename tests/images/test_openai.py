"""OpenAI's images and servers that speak the same: generations, edits, and how they say no."""

from __future__ import annotations

import pytest

from tests.images.asking import bundled, drawn, fault
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, JPEG, PAGE, PNG, Asked, Fake, Reply, form_fields

KEY = "sk-test-0123456789"
ENV = {"OPENAI_API_KEY": KEY}
DATA = "data:image/png;base64," + B64
GENERATIONS, EDITS = "POST /v1/images/generations", "POST /v1/images/edits"
GOOD = Reply({"created": 1, "data": [{"b64_json": B64}], "usage": {"total_tokens": 100}})


def error(status: int, message: str, code: str = "", kind: str = "invalid_request_error") -> Reply:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code or None}}
    return Reply(body, status)


async def test_three_names_are_one_model_in_three_qualities(make: MakeStudio, fake: Fake) -> None:
    fake.on(GENERATIONS, GOOD)
    openai = bundled(make(ENV, provider="openai"), "openai", fake, path="/v1")
    for aspect, size in (("landscape", "1536x1024"), ("square", "1024x1024")):
        answer = await openai.agenerate(" a corgi ", aspect, model="gpt-image-2-high")
        assert drawn(answer) == PNG
        assert (answer["model"], answer["modality"]) == ("gpt-image-2-high", "text")
        assert fake.asked[-1].json == {
            "model": "gpt-image-2",
            "prompt": "a corgi",
            "size": size,
            "quality": "high",
            "n": 1,
        }
    assert fake.asked[-1].headers["authorization"] == f"Bearer {KEY}"
    await openai.agenerate("a corgi", "portrait")
    assert (fake.asked[-1].json["size"], fake.asked[-1].json["quality"]) == ("1024x1536", "medium")


def test_drawing_works_without_an_event_loop(make: MakeStudio, fake: Fake) -> None:
    fake.on(GENERATIONS, GOOD)
    assert (
        drawn(bundled(make(ENV, provider="openai"), "openai", fake, path="/v1").generate("a corgi"))
        == PNG
    )


async def test_pictures_are_changed_by_a_form_with_files(make: MakeStudio, fake: Fake) -> None:
    fake.on(EDITS, GOOD)
    fake.on("GET /dog.jpg", Reply(JPEG, kind="image/jpeg"))
    openai = bundled(make(ENV, provider="openai"), "openai", fake, path="/v1")
    answer = await openai.agenerate(
        "with a hat", image_url=DATA, reference_image_urls=[f"{fake.url}/dog.jpg", " ", DATA]
    )
    assert drawn(answer) == PNG
    assert answer["modality"] == "image"
    assert form_fields(fake.asked[-1]) == {
        "model": [b"gpt-image-2"],
        "prompt": [b"with a hat"],
        "size": [b"1536x1024"],
        "quality": [b"medium"],
        "n": [b"1"],
        "image[]": [PNG, JPEG],
    }
    assert b'filename="dog.jpg"' in fake.asked[-1].body
    assert "authorization" not in fake.asked[0].headers


async def test_more_pictures_than_it_takes_are_refused(make: MakeStudio, fake: Fake) -> None:
    openai = bundled(make(ENV, provider="openai"), "openai", fake)
    many = [f"https://a.example/{number}.png" for number in range(17)]
    kind, words = fault(await openai.agenerate("x", reference_image_urls=many))
    assert (kind, fake.asked) == ("invalid_argument", [])
    assert "16" in words


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}."), "auth_required", "hermes tools images"),
        (
            error(400, "Your request was rejected by the safety system.", "moderation_blocked"),
            "content_policy",
            "safety system",
        ),
        (error(400, "Invalid size."), "invalid_argument", "Invalid size"),
        (error(429, "Rate limit reached.", "rate_limit_exceeded"), "rate_limited", "Rate limit"),
        (error(500, "The server had an error."), "api_error", "500"),
        (Reply(PAGE, 502, kind="text/html"), "api_error", "web page"),
        (Reply(PAGE, kind="text/html"), "api_error", "web page"),
        (Reply({"data": []}), "api_error", "no image"),
        (Reply({"data": [{"b64_json": "%%"}]}), "io_error", "base64"),
        (Reply({"data": [{"b64_json": "bm8gcGljdHVyZQ=="}]}), "io_error", "not a PNG"),
        (Reply(["x"]), "api_error", "not a JSON object"),
        (Reply(b"", 403, kind="text/plain"), "auth_required", "403"),
    ],
)
async def test_every_no_has_a_kind_and_words(
    make: MakeStudio, fake: Fake, reply: Reply, kind: str, words: str
) -> None:
    fake.on(GENERATIONS, reply)
    answer = await bundled(make(ENV, provider="openai"), "openai", fake, path="/v1").agenerate(
        "a corgi"
    )
    found, said = fault(answer)
    assert (found, words in said) == (kind, True), said
    assert KEY not in said
    assert len(fake.asked) == 1


async def test_a_busy_server_is_asked_again_when_it_says_when(make: MakeStudio, fake: Fake) -> None:
    busy = Reply({"error": {"message": "slow down"}}, 429, headers={"retry-after": "0"})
    fake.on(GENERATIONS, busy, busy, GOOD)
    openai = bundled(make(ENV, provider="openai"), "openai", fake, path="/v1")
    assert drawn(await openai.agenerate("a corgi")) == PNG
    fake.on(GENERATIONS, busy)
    assert fault(await openai.agenerate("a corgi"))[0] == "rate_limited"
    assert len(fake.asked) == 6
    late = Reply({"error": {"message": "slow down"}}, 429, headers={"retry-after": "3600"})
    fake.on(GENERATIONS, late)
    kind, words = fault(await openai.agenerate("a corgi"))
    assert (kind, len(fake.asked)) == ("rate_limited", 7)
    assert "retry after 3600 s" in words


async def test_a_server_that_takes_too_long_is_given_up(make: MakeStudio, fake: Fake) -> None:
    fake.on(GENERATIONS, Reply({"data": []}, delay=30))
    openai = bundled(make(ENV, provider="openai", timeout=0.2), "openai", fake, path="/v1")
    kind, words = fault(await openai.agenerate("a corgi"))
    assert kind == "timeout"
    assert "0.2 s" in words or "in time" in words or "too long" in words


async def test_nobody_there_is_told(make: MakeStudio) -> None:
    openai = bundled(make(ENV, provider="openai"), "openai")
    openai.url = "http://127.0.0.1:9/v1"
    kind, words = fault(await openai.agenerate("a corgi"))
    assert kind in ("timeout", "api_error")
    assert "No connection" in words


async def test_without_a_key_it_says_which(make: MakeStudio, fake: Fake) -> None:
    kind, words = fault(await bundled(make(), "openai", fake).agenerate("a corgi"))
    assert (kind, fake.asked) == ("auth_required", [])
    assert "OPENAI_API_KEY" in words


async def test_a_compatible_server_needs_an_address_and_no_key(
    make: MakeStudio, fake: Fake
) -> None:
    fake.on(GENERATIONS, Reply({"data": [{"url": f"{fake.url}/out/1.png"}]}))
    fake.on("GET /out/1.png", Reply(PNG))
    own = {
        "base_url": f"{fake.url}/v1/",
        "size_by_aspect": {"square": "512x512"},
        "params": {"steps": 4},
    }
    server = bundled(make(model="flux.1-dev", openai_compatible=own), "openai-compatible")
    assert drawn(await server.agenerate("a corgi", "square")) == PNG
    assert fake.asked[0].json == {
        "prompt": "a corgi",
        "size": "512x512",
        "n": 1,
        "model": "flux.1-dev",
        "steps": 4,
    }
    assert "authorization" not in fake.asked[0].headers
    keyed = make({"OPENAI_COMPATIBLE_IMAGE_API_KEY": KEY}, openai_compatible=own)
    await bundled(keyed, "openai-compatible").agenerate("a corgi")
    assert fake.asked[-2].headers["authorization"] == f"Bearer {KEY}"
    kind, words = fault(await bundled(make(), "openai-compatible").agenerate("a corgi"))
    assert kind == "invalid_argument"
    assert "image_gen.openai_compatible.base_url" in words


async def test_a_compatible_server_changes_pictures_too(make: MakeStudio, fake: Fake) -> None:
    def edited(asked: Asked) -> Reply:
        assert form_fields(asked)["image"] == [PNG]
        return Reply({"data": [{"b64_json": B64}]})

    fake.on(EDITS, edited)
    own = {"base_url": f"{fake.url}/v1"}
    server = bundled(make(openai_compatible=own), "openai-compatible")
    assert drawn(await server.agenerate("a hat", image_url=DATA)) == PNG
