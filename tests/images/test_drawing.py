"""One picture from wish to answer: whatever a provider does, the answer has one shape."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.codec.json import decode
from hermes.core.effects import Draw, FetchUrl, ReadPath
from hermes.core.errors import BudgetReached
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage
from hermes.core.world import World
from hermes.images.generator import ImageGenerator, ImageRequest
from hermes.images.provider import (
    ImageGenProvider,
    error_response,
    save_b64_image,
    success_response,
)
from hermes.images.registry import ImageProviders
from hermes.images.tools import ImageService, ImageTool, image_generate, spec_for
from hermes.testing.context import ScriptedContext
from hermes.workspaces.local import LocalWorkspace
from tests.images.asking import drawn
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, JPEG, PNG

WISH = ImageRequest(prompt="a corgi", aspect="square")
Generate = Callable[..., Any]


class Stub(ImageGenProvider):
    """Draws as a test says, and remembers what it was asked."""

    def __init__(
        self, generate: Generate, *, price: object = None, most: int = 3, chars: int = 0
    ) -> None:
        self._generate = generate
        self._price = price
        self._most = most
        self._chars = chars
        self.asked: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        return "stub"

    def host(self) -> str:
        return "draws.example"

    def list_models(self) -> list[dict[str, Any]]:
        return [{"id": "pen", "price": self._price}]

    def capabilities(self) -> dict[str, Any]:
        kinds = ["text", "image"] if self._most else ["text"]
        can = {"modalities": kinds, "max_reference_images": self._most}
        return {**can, "max_prompt_chars": self._chars} if self._chars else can

    def generate(self, prompt: str, aspect_ratio: str = "landscape", **kwargs: Any) -> Any:
        self.asked.append({"prompt": prompt, "aspect_ratio": aspect_ratio, **kwargs})
        return self._generate()


class Books:
    """A meter that remembers; with `full`, nothing may be spent."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.reserved: list[ModelCalled] = []
        self.settled: list[CallSettled] = []

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        if self.full:
            raise BudgetReached(
                "The cap of today is reached.",
                scope="day",
                key="",
                unit="usd",
                cap=1,
                spent=1,
                asked=1,
            )
        self.reserved.append(call)
        assert call.reserved is not None
        return call.reserved

    def settle(self, settled: CallSettled) -> None:
        self.settled.append(settled)


def good(**extra: Any) -> Generate:
    def generate() -> Any:
        path = save_b64_image(B64, prefix="stub")
        return success_response(
            image=path,
            model="pen",
            prompt="a corgi",
            aspect_ratio="square",
            provider="stub",
            extra=extra,
        )

    return generate


def bad(kind: str) -> Generate:
    return lambda: error_response(error="no", error_type=kind, provider="stub")


def fails(error: Exception) -> Generate:
    def generate() -> Any:
        raise error

    return generate


def drawing(
    make: MakeStudio, stub: Stub, books: Books | None = None, *, at_once: int = 4, **more: Any
) -> ImageGenerator:
    providers = ImageProviders(make(provider="stub"))
    providers.register_provider(stub, source="test")
    return ImageGenerator(providers, meter=lambda: books, slots=asyncio.Semaphore(at_once), **more)


async def test_a_picture_is_booked_with_its_price(make: MakeStudio) -> None:
    stub, books = Stub(good(seed=3), price="$0.04/image"), Books()
    answer = await drawing(make, stub, books).generate(WISH)
    assert drawn(answer) == PNG
    assert answer["seed"] == 3
    call = books.reserved[0]
    assert (call.model, call.provider, call.cause) == ("pen", "stub", "image")
    assert call.reserved == Usage(requests=1, cost=0.04)
    assert books.settled == [
        CallSettled(
            call=call.call,
            usage=Usage(requests=1, cost=0.04),
            model="pen",
            provider="stub",
        )
    ]


async def test_a_price_that_nobody_knows_is_unknown_not_nothing(make: MakeStudio) -> None:
    books = Books()
    await drawing(make, Stub(good()), books).generate(WISH)
    assert books.settled[0].usage == Usage(requests=1, cost=None)


async def test_what_the_server_says_it_cost_counts_more(make: MakeStudio) -> None:
    books = Books()
    await drawing(make, Stub(good(cost_usd=0.5), price="$0.04/image"), books).generate(WISH)
    assert books.settled[0].usage.cost == 0.5


@pytest.mark.parametrize(
    ("generate", "kind", "cost", "certain"),
    [
        (bad("content_policy"), "content_policy", 0.0, True),
        (bad("rate_limited"), "rate_limited", 0.0, True),
        (bad("timeout"), "timeout", 0.04, False),
        (fails(RuntimeError("boom")), "RuntimeError", 0.04, False),
        (lambda: "https://a.example/x.png", "invalid_provider_response", 0.04, False),
    ],
)
async def test_failures_cost_nothing_only_if_that_is_sure(
    make: MakeStudio, generate: Generate, kind: str, cost: float, certain: bool
) -> None:
    books = Books()
    answer = await drawing(make, Stub(generate, price=0.04), books).generate(WISH)
    assert (answer["success"], answer["error_type"]) == (False, kind)
    assert (books.settled[0].usage.cost, books.settled[0].certain) == (cost, certain)


async def test_a_cap_that_is_reached_draws_nothing(make: MakeStudio) -> None:
    stub, books = Stub(good(), price=0.04), Books(full=True)
    answer = await drawing(make, stub, books).generate(WISH)
    assert (answer["error_type"], answer["error"]) == (
        "BudgetReached",
        "The cap of today is reached.",
    )
    assert (stub.asked, books.settled) == ([], [])


async def test_one_that_never_ends_is_given_up(make: MakeStudio) -> None:
    forever = threading.Event()
    stub = Stub(lambda: forever.wait(60))
    answer = await drawing(make, stub, seconds=-4.9).generate(WISH)
    forever.set()
    assert answer["error_type"] == "timeout"


async def test_pictures_over_the_cap_are_left_out_with_a_note(make: MakeStudio) -> None:
    stub = Stub(good())
    answer = await drawing(make, stub).generate(WISH, ("a", "b", "c", "d", "e"))
    assert answer["note"] == "Only the first 3 of 5 images were used."
    assert stub.asked[0]["image_url"] == "a"
    assert stub.asked[0]["reference_image_urls"] == ["b", "c"]


async def test_secrets_do_not_leave_in_a_prompt(make: MakeStudio) -> None:
    stub = Stub(good())
    clean = lambda text: text.replace("hunter2hunter2", "***")  # noqa: E731
    await drawing(make, stub, clean=clean).generate(
        ImageRequest(prompt="hunter2hunter2 dog", aspect="square")
    )
    assert stub.asked[0]["prompt"] == "*** dog"


async def test_no_more_are_drawn_at_once_than_the_settings_allow(make: MakeStudio) -> None:
    now, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=60)
    inner = good()

    def generate() -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        both.wait()
        with lock:
            now -= 1
        return inner()

    makes = drawing(make, Stub(generate), at_once=2)
    answers = await asyncio.gather(*(makes.generate(WISH) for _ in range(6)))
    assert all(answer["success"] for answer in answers)
    assert len({answer["image"] for answer in answers}) == 6
    assert most == 2


async def test_nobody_to_draw_is_an_answer_too(make: MakeStudio) -> None:
    providers = ImageProviders(make())
    made = ImageGenerator(providers, meter=lambda: None, slots=asyncio.Semaphore(1))
    answer = await made.generate(WISH)
    assert (answer["success"], answer["error_type"]) == (False, "provider_error")
    assert "hermes tools images" in answer["error"]


class Context(ScriptedContext):
    def __init__(self, workspace: LocalWorkspace, drawer: ImageService) -> None:
        super().__init__(workspace=workspace)
        self._kept[ImageService] = drawer


@pytest.fixture
def room(tmp_path: Path) -> LocalWorkspace:
    root = tmp_path / "work"
    root.mkdir()
    return LocalWorkspace(str(root), state=tmp_path / "state", world=World(), env={})


def put(room: LocalWorkspace, name: str, data: bytes) -> None:
    Path(room.root, name).write_bytes(data)


async def test_the_tool_answers_in_json_and_tells_screens_the_path(
    make: MakeStudio, room: LocalWorkspace
) -> None:
    context = Context(room, ImageService(drawing(make, Stub(good()))))
    output = await context.call(image_generate, prompt="a corgi", aspect_ratio="16:9")
    answer = decode(dict, output.parts[0].text)  # type: ignore[union-attr]
    assert answer["success"]
    assert output.details == {"image": answer["image"], "provider": "stub", "model": "pen"}
    assert (output.failed, output.origin) == (False, "hermes")


async def test_a_local_picture_goes_as_data_and_its_name_stays_here(
    make: MakeStudio, room: LocalWorkspace
) -> None:
    put(room, "cat.jpg", JPEG)
    stub = Stub(good())
    context = Context(room, ImageService(drawing(make, stub)))
    output = await context.call(
        image_generate,
        prompt="a hat",
        image_url="cat.jpg",
        reference_image_urls=["https://a.b/c.png"],
    )
    assert not output.failed
    told = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert stub.asked[0]["image_url"] == told
    assert stub.asked[0]["reference_image_urls"] == ["https://a.b/c.png"]


class Far(LocalWorkspace):
    is_remote = True


async def test_tools_on_another_machine_get_a_copy_that_they_can_see(
    make: MakeStudio, tmp_path: Path
) -> None:
    (tmp_path / "far").mkdir()
    far = Far(str(tmp_path / "far"), state=tmp_path / "state", world=World(), env={})
    output = await Context(far, ImageService(drawing(make, Stub(good())))).call(
        image_generate, prompt="a corgi"
    )
    answer = decode(dict, output.parts[0].text)  # type: ignore[union-attr]
    seen = answer["agent_visible_image"]
    assert seen != answer["image"]
    assert await far.read_bytes(seen) == PNG


async def test_a_prompt_that_is_too_long_is_not_sent(make: MakeStudio) -> None:
    stub = Stub(good(), chars=5)
    answer = await drawing(make, stub).generate(WISH)
    assert (answer["error_type"], stub.asked) == ("invalid_argument", [])
    assert "7 characters" in answer["error"]


@pytest.mark.parametrize("name", ["missing.png", "notes.txt", "."])
async def test_what_is_no_picture_is_not_sent(
    make: MakeStudio, room: LocalWorkspace, name: str
) -> None:
    put(room, "notes.txt", b"secret plans")
    stub = Stub(good())
    output = await Context(room, ImageService(drawing(make, stub))).call(
        image_generate, prompt="a hat", image_url=name
    )
    assert output.failed
    assert decode(dict, output.parts[0].text)["error_type"] == "invalid_argument"  # type: ignore[union-attr]
    assert stub.asked == []


def test_what_a_call_does_is_known_before_it_happens(room: LocalWorkspace) -> None:
    tool = ImageTool(lambda: Stub(good()))
    found = list(
        tool._effects(
            room,
            {
                "prompt": "a hat",
                "image_url": "cat.jpg",
                "reference_image_urls": ["https://a.example/b.png", "data:image/png;base64,AAAA"],
            },
        )
    )
    assert found == [
        Draw(
            provider="stub",
            host="draws.example",
            prompt="a hat",
            images=("cat.jpg", "https://a.example/b.png", "data:"),
        ),
        ReadPath(path=f"{room.root}/cat.jpg"),
        FetchUrl(url="https://a.example/b.png"),
    ]


def test_what_a_provider_cannot_do_is_not_offered() -> None:
    def names(**can: object) -> list[str]:
        return list(spec_for(can).parameters["properties"])

    assert names(modalities=["text"]) == ["prompt", "aspect_ratio"]
    assert names() == ["prompt", "aspect_ratio"]
    both = ["text", "image"]
    assert names(modalities=both, max_reference_images=1)[2:] == ["image_url"]
    assert names(modalities=both, max_reference_images=4, supports_upscale=True)[2:] == [
        "image_url",
        "reference_image_urls",
        "upscale",
    ]
