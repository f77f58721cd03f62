"""Servers that let one wait: fal, Replicate, ComfyUI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from hermes.core.world import SystemClock
from hermes.images.studio import Studio
from tests.durability.observing import eventually
from tests.images.asking import bundled, drawn, fault
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, PNG, Asked, Fake, Reply, form_fields, png
from tests.timing import leap

DATA = "data:image/png;base64," + B64
LARGE = png(4, 4)
FAL = {"FAL_KEY": "fal-key-0123456789"}
REPLICATE = {"REPLICATE_API_TOKEN": "r8_0123456789"}
MB = 1024 * 1024


class Hasty(SystemClock):
    """Waits between two looks take no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.fixture
def hasty(make: MakeStudio) -> MakeStudio:
    def studio(*args: Any, **settings: Any) -> Studio:
        made = make(*args, **settings)
        made.world.clock = Hasty()
        return made

    return studio


async def out_of_time(drawing: Coroutine[None, None, Any], fake: Fake, looked: str) -> Any:
    """What becomes of it when its twenty seconds are over after this look at the queue."""
    task = asyncio.create_task(drawing)
    await eventually(lambda: looked in fake.paths())
    leap(20)
    return await task


class Queue:
    """The queue of fal as it is documented: addresses of a request leave out the end of the
    model's name, and its states come one after the other."""

    def __init__(
        self, fake: Fake, app: str, *, states: tuple[str, ...] = ("IN_QUEUE", "COMPLETED")
    ):
        self.fake = fake
        self.here = f"/{app}/requests/req-1"
        self.result: Reply = Reply({"images": [{"url": f"{fake.url}/files/a.png"}], "seed": 5})
        steps = [Reply({"status": state, "queue_position": 0}, 202) for state in states]
        fake.on(f"GET {self.here}/status", *steps)
        fake.on(f"GET {self.here}", lambda asked: self.result)
        fake.on(f"PUT {self.here}/cancel", Reply({"status": "CANCELLATION_REQUESTED"}, 202))
        fake.on("GET /files/a.png", Reply(PNG))

    def accepts(self, endpoint: str) -> None:
        urls = {
            "status_url": f"{self.fake.url}{self.here}/status",
            "response_url": f"{self.fake.url}{self.here}",
            "cancel_url": f"{self.fake.url}{self.here}/cancel",
        }
        self.fake.on(
            f"POST /{endpoint}", Reply({"request_id": "req-1", "status": "IN_QUEUE", **urls})
        )


async def test_fal_is_asked_waited_for_and_fetched_from(hasty: MakeStudio, fake: Fake) -> None:
    queue = Queue(fake, "fal-ai/flux-2", states=("IN_QUEUE", "IN_PROGRESS", "COMPLETED"))
    queue.accepts("fal-ai/flux-2/klein/9b")
    answer = await bundled(hasty(FAL), "fal", fake).agenerate("a corgi", "portrait", seed=5)
    assert drawn(answer) == PNG
    assert (answer["model"], answer["seed"]) == ("fal-ai/flux-2/klein/9b", 5)
    assert fake.asked[0].json == {"prompt": "a corgi", "image_size": "portrait_16_9", "seed": 5}
    assert fake.asked[0].headers["authorization"] == "Key fal-key-0123456789"
    status = f"GET {queue.here}/status"
    assert fake.paths() == [
        "POST /fal-ai/flux-2/klein/9b",
        status,
        status,
        status,
        f"GET {queue.here}",
        "GET /files/a.png",
    ]


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("fal-ai/nano-banana-pro", {"aspect_ratio": "16:9"}),
        ("fal-ai/gpt-image-1.5", {"image_size": "1536x1024", "quality": "medium"}),
        ("fal-ai/gpt-image-2", {"image_size": "landscape_4_3", "quality": "medium"}),
        ("fal-ai/recraft/v4/pro", {"image_size": "landscape_16_9"}),
    ],
)
async def test_each_model_at_fal_takes_sizes_in_its_way(
    hasty: MakeStudio, fake: Fake, model: str, size: dict[str, str]
) -> None:
    Queue(fake, "/".join(model.split("/")[:2])).accepts(model)
    await bundled(hasty(FAL), "fal", fake).agenerate("a corgi", model=model)
    assert fake.asked[0].json == {"prompt": "a corgi", **size}


async def test_fal_changes_pictures_where_the_model_can(hasty: MakeStudio, fake: Fake) -> None:
    Queue(fake, "fal-ai/nano-banana-pro").accepts("fal-ai/nano-banana-pro/edit")
    fal = bundled(hasty(FAL, fal={"model": "fal-ai/nano-banana-pro"}), "fal", fake)
    assert drawn(await fal.agenerate("a hat", image_url=DATA)) == PNG
    assert fake.asked[0].json["image_urls"] == [DATA]
    Queue(fake, "fal-ai/qwen-image-edit").accepts("fal-ai/qwen-image-edit")
    await fal.agenerate("a hat", image_url=DATA, model="fal-ai/qwen-image")
    assert DATA in [each.json.get("image_url") for each in fake.asked if each.method == "POST"]
    kind, words = fault(await fal.agenerate("x", image_url=DATA, model="fal-ai/z-image/turbo"))
    assert kind == "invalid_argument"
    assert "fal-ai/z-image/turbo cannot edit images" in words


async def test_a_picture_is_made_larger_on_request(hasty: MakeStudio, fake: Fake) -> None:
    Queue(fake, "fal-ai/flux-2").accepts("fal-ai/flux-2/klein/9b")
    upscaler = Queue(fake, "fal-ai/clarity-upscaler")
    upscaler.accepts("fal-ai/clarity-upscaler")
    upscaler.result = Reply({"image": {"url": f"{fake.url}/files/b.png", "width": 4}})
    fake.on("GET /files/b.png", Reply(LARGE))
    fal = bundled(hasty(FAL), "fal", fake)
    assert fal.capabilities()["supports_upscale"]
    answer = await fal.agenerate("a corgi", upscale=True)
    assert (drawn(answer), answer["upscaled"]) == (LARGE, True)
    wanted = next(each for each in fake.asked if each.path == "/fal-ai/clarity-upscaler").json
    assert wanted == {
        "image_url": f"{fake.url}/files/a.png",
        "upscale_factor": 2,
        "creativity": 0.35,
        "resemblance": 0.6,
        "guidance_scale": 4,
        "num_inference_steps": 18,
    }
    fake.on("POST /fal-ai/clarity-upscaler", Reply({"detail": "no runner"}, 500))
    answer = await fal.agenerate("a corgi", upscale=True)
    assert (drawn(answer), answer["upscaled"]) == (PNG, False)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply({"detail": "Invalid API key"}, 401), "auth_required", "Invalid API key"),
        (
            Reply({"detail": [{"loc": ["body", "prompt"], "msg": "too long"}]}, 422),
            "invalid_argument",
            "too long",
        ),
        (Reply({"detail": "User is locked"}, 403), "auth_required", "locked"),
        (Reply({"detail": "busy"}, 429), "rate_limited", "busy"),
        (Reply({"status": "IN_QUEUE"}), "api_error", "did not accept"),
    ],
)
async def test_fal_says_no_at_once(
    hasty: MakeStudio, fake: Fake, reply: Reply, kind: str, words: str
) -> None:
    fake.on("POST /fal-ai/flux-2/klein/9b", reply)
    found, said = fault(await bundled(hasty(FAL), "fal", fake).agenerate("a corgi"))
    assert (found, words in said) == (kind, True), said


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (
            Reply(
                {"detail": [{"msg": "flagged", "type": "content_policy_violation", "ctx": {}}]}, 422
            ),
            "content_policy",
        ),
        (Reply({"detail": "runner crashed"}, 500), "api_error"),
        (Reply({"images": []}), "api_error"),
        (
            Reply({"images": [{"url": "https://x.example/a.png"}], "has_nsfw_concepts": [True]}),
            "content_policy",
        ),
    ],
)
async def test_fal_says_no_in_the_end(
    hasty: MakeStudio, fake: Fake, result: Reply, kind: str
) -> None:
    queue = Queue(fake, "fal-ai/flux-2")
    queue.accepts("fal-ai/flux-2/klein/9b")
    queue.result = result
    assert fault(await bundled(hasty(FAL), "fal", fake).agenerate("a corgi"))[0] == kind


async def test_a_queue_that_does_not_end_is_left_and_told_so(make: MakeStudio, fake: Fake) -> None:
    queue = Queue(fake, "fal-ai/flux-2", states=("IN_QUEUE",))
    queue.accepts("fal-ai/flux-2/klein/9b")
    drawing = bundled(make(FAL, timeout=20), "fal", fake).agenerate("a corgi")
    answer = await out_of_time(drawing, fake, f"GET {queue.here}/status")
    assert fault(answer)[0] == "timeout"
    assert fake.paths()[-1] == f"PUT {queue.here}/cancel"


async def test_the_key_goes_to_no_address_that_an_answer_names(
    hasty: MakeStudio, fake: Fake
) -> None:
    queue = Queue(fake, "fal-ai/flux-2")
    elsewhere = {"status_url": "http://127.0.0.1:9/steal", "response_url": "http://127.0.0.1:9/x"}
    fake.on("POST /fal-ai/flux-2/klein/9b", Reply({"request_id": "req-1", **elsewhere}))
    assert drawn(await bundled(hasty(FAL), "fal", fake).agenerate("a corgi")) == PNG
    assert f"GET {queue.here}/status" in fake.paths()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(png(padding=30 * MB)),
        Reply(b"<html>expired</html>", kind="text/html"),
        Reply(b"", 404),
    ],
    ids=["30 MB", "page", "gone"],
)
async def test_a_picture_that_cannot_be_saved_is_still_an_address(
    hasty: MakeStudio, fake: Fake, reply: Reply
) -> None:
    Queue(fake, "fal-ai/flux-2").accepts("fal-ai/flux-2/klein/9b")
    fake.on("GET /files/a.png", reply)
    answer = await bundled(hasty(FAL), "fal", fake).agenerate("a corgi")
    assert answer["success"]
    assert answer["image"] == f"{fake.url}/files/a.png"
    assert "could not be saved" in answer["warning"]


async def test_a_prediction_is_begun_waited_for_and_fetched(hasty: MakeStudio, fake: Fake) -> None:
    begun = {"id": "p1", "status": "starting", "urls": {"get": "https://elsewhere.example/x"}}
    fake.on("POST /v1/models/black-forest-labs/flux-schnell/predictions", Reply(begun, 201))
    done = {**begun, "status": "succeeded", "output": [f"{fake.url}/v1/out.png"]}
    fake.on("GET /v1/predictions/p1", Reply({**begun, "status": "processing"}), Reply(done))
    fake.on("GET /v1/out.png", Reply(PNG))
    replicate = bundled(hasty(REPLICATE), "replicate", fake, path="/v1")
    assert drawn(await replicate.agenerate("a corgi", "square", seed=3)) == PNG
    first = fake.asked[0]
    assert first.json == {"input": {"prompt": "a corgi", "aspect_ratio": "1:1", "seed": 3}}
    assert first.headers["authorization"] == "Bearer r8_0123456789"
    assert first.headers["prefer"] == "wait=30"


@pytest.mark.parametrize(
    ("error", "kind"),
    [("NSFW content detected. Try again.", "content_policy"), ("out of memory", "provider_error")],
)
async def test_a_prediction_that_fails_says_why(
    hasty: MakeStudio, fake: Fake, error: str, kind: str
) -> None:
    failed = {"id": "p1", "status": "failed", "error": error}
    fake.on("POST /models/google/nano-banana/predictions", Reply(failed, 201))
    replicate = bundled(hasty(REPLICATE), "replicate", fake)
    answer = await replicate.agenerate("x", image_url=DATA, model="google/nano-banana")
    assert fault(answer)[0] == kind
    assert fake.asked[0].json["input"]["image_input"] == [DATA]


async def test_a_prediction_nobody_waits_for_is_cancelled(make: MakeStudio, fake: Fake) -> None:
    begun = Reply({"id": "p1", "status": "starting"}, 201)
    fake.on("POST /models/black-forest-labs/flux-schnell/predictions", begun)
    fake.on("GET /predictions/p1", begun)
    drawing = bundled(make(REPLICATE, timeout=20), "replicate", fake).agenerate("a corgi")
    answer = await out_of_time(drawing, fake, "GET /predictions/p1")
    assert fault(answer)[0] == "timeout"
    assert fake.paths()[-1] == "POST /predictions/p1/cancel"


class Comfy:
    """ComfyUI: the history is empty until a workflow is done."""

    def __init__(self, fake: Fake, *, looks: int = 2) -> None:
        self.fake = fake
        self.queued: list[Any] = []
        self.looks = looks
        self.entry: Any = {
            "outputs": {
                "9": {"images": [{"filename": "a b.png", "subfolder": "", "type": "output"}]}
            },
            "status": {"status_str": "success", "completed": True, "messages": []},
        }
        loader = {"input": {"required": {"ckpt_name": [["sdxl.safetensors", "other.ckpt"], {}]}}}
        fake.on(
            "GET /object_info/CheckpointLoaderSimple", Reply({"CheckpointLoaderSimple": loader})
        )
        fake.on("POST /prompt", self._prompt)
        fake.on("GET /history/id-1", self._history)
        fake.on("GET /view", Reply(PNG))
        fake.on("POST /interrupt", Reply({}))
        fake.on("POST /upload/image", Reply({"name": "up.png", "subfolder": "in", "type": "input"}))

    def _prompt(self, asked: Asked) -> Reply:
        self.queued.append(asked.json["prompt"])
        return Reply({"prompt_id": "id-1", "number": 1, "node_errors": {}})

    def _history(self, asked: Asked) -> Reply:
        self.looks -= 1
        return Reply({"id-1": self.entry} if self.looks < 0 else {})


async def test_comfyui_draws_with_its_first_checkpoint(hasty: MakeStudio, fake: Fake) -> None:
    comfy = Comfy(fake)
    studio = hasty(comfyui={"base_url": fake.url, "negative_prompt": "blur"})
    answer = await bundled(studio, "comfyui").agenerate("a corgi", "portrait", seed=11)
    assert drawn(answer) == PNG
    assert answer["model"] == "sdxl.safetensors"
    workflow = comfy.queued[0]
    assert workflow["6"]["inputs"]["text"] == "a corgi"
    assert workflow["7"]["inputs"]["text"] == "blur"
    assert workflow["5"]["inputs"] == {"width": 832, "height": 1216, "batch_size": 1}
    assert workflow["3"]["inputs"]["seed"] == 11
    assert fake.asked[-1].query == {"filename": "a b.png", "type": "output"}


async def test_comfyui_changes_a_picture_that_is_uploaded_first(
    hasty: MakeStudio, fake: Fake
) -> None:
    comfy = Comfy(fake)
    studio = hasty(comfyui={"base_url": fake.url, "model": "mine.ckpt"})
    assert drawn(await bundled(studio, "comfyui").agenerate("a hat", image_url=DATA)) == PNG
    uploaded = next(each for each in fake.asked if each.path == "/upload/image")
    assert form_fields(uploaded)["image"] == [PNG]
    assert comfy.queued[0]["10"]["inputs"] == {"image": "in/up.png"}
    assert comfy.queued[0]["4"]["inputs"] == {"ckpt_name": "mine.ckpt"}


async def test_comfyui_fills_a_workflow_of_ones_own(
    hasty: MakeStudio, fake: Fake, tmp_path: Path
) -> None:
    comfy = Comfy(fake)
    own = {"1": {"class_type": "Mine", "inputs": {"text": "photo of {prompt}", "w": "{width}"}}}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(own))
    studio = hasty(comfyui={"base_url": fake.url, "workflow": str(file)})
    provider = bundled(studio, "comfyui")
    assert drawn(await provider.agenerate("a corgi", "square")) == PNG
    assert comfy.queued == [
        {"1": {"class_type": "Mine", "inputs": {"text": "photo of a corgi", "w": 1024}}}
    ]
    assert fault(await provider.agenerate("a hat", image_url=DATA))[0] == "invalid_argument"
    file.write_text("{")
    assert fault(await provider.agenerate("a corgi"))[0] == "invalid_argument"


async def test_comfyui_says_which_node_failed(hasty: MakeStudio, fake: Fake) -> None:
    comfy = Comfy(fake)
    told = {"node_type": "KSampler", "exception_message": "CUDA out of memory"}
    comfy.entry = {
        "outputs": {},
        "status": {
            "status_str": "error",
            "completed": False,
            "messages": [["execution_start", {}], ["execution_error", told]],
        },
    }
    provider = bundled(hasty(comfyui={"base_url": fake.url}), "comfyui")
    kind, words = fault(await provider.agenerate("a corgi"))
    assert kind == "provider_error"
    assert "KSampler: CUDA out of memory" in words
    wrong = {"error": {"type": "prompt_outputs_failed_validation", "message": "bad"}}
    fake.on("POST /prompt", Reply(wrong, 400))
    assert fault(await provider.agenerate("a corgi"))[0] == "invalid_argument"
    fake.on("GET /object_info/CheckpointLoaderSimple", Reply({}))
    assert fault(await provider.agenerate("a corgi"))[0] == "missing_dependency"


async def test_comfyui_is_stopped_when_nobody_waits(make: MakeStudio, fake: Fake) -> None:
    Comfy(fake, looks=10_000)
    provider = bundled(make(comfyui={"base_url": fake.url}, timeout=20), "comfyui")
    answer = await out_of_time(provider.agenerate("a corgi"), fake, "GET /history/id-1")
    assert fault(answer)[0] == "timeout"
    assert fake.paths()[-1] == "POST /interrupt"
