"""What authors of providers get: shapes, answers, and files that are really pictures."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.images.generator import ImagePrice, price_of, validate_answer
from hermes.images.provider import (
    DEFAULT_ASPECT_RATIO,
    VALID_ASPECT_RATIOS,
    ImageGenProvider,
    error_response,
    load_source_image,
    normalize_reference_images,
    resolve_aspect_ratio,
    save_b64_image,
    save_url_image,
    success_response,
)
from hermes.images.storage import ImageFault
from hermes.images.studio import use_studio
from hermes.testing.image_provider import plain_studio
from tests.images.conftest import MakeStudio
from tests.images.fakes import B64, JPEG, PAGE, PNG, Fake, Reply, png

MB = 1024 * 1024


def test_shapes_that_are_none_of_the_three_count_as_landscape() -> None:
    assert [resolve_aspect_ratio(each) for each in VALID_ASPECT_RATIOS] == [*VALID_ASPECT_RATIOS]
    assert resolve_aspect_ratio(" Square ") == "square"
    assert {resolve_aspect_ratio(each) for each in ("16:9", "", None, 3)} == {DEFAULT_ASPECT_RATIO}


@given(st.one_of(st.none(), st.text(), st.integers(), st.lists(st.one_of(st.text(), st.none()))))
def test_references_are_a_list_without_blanks_or_nothing(value: object) -> None:
    found = normalize_reference_images(value)
    assert found is None or (found and all(each == each.strip() != "" for each in found))
    assert normalize_reference_images(found) == found


def test_extra_facts_cannot_overwrite_an_answer() -> None:
    answer = success_response(
        image="/a.png",
        model="m",
        prompt="p",
        aspect_ratio="square",
        provider="x",
        extra={"success": False, "image": "/etc/passwd", "seed": 7},
    )
    assert answer == {
        "success": True,
        "image": "/a.png",
        "model": "m",
        "prompt": "p",
        "aspect_ratio": "square",
        "modality": "text",
        "provider": "x",
        "seed": 7,
    }


def test_a_provider_needs_a_name_and_a_way_to_draw_and_nothing_else() -> None:
    class Small(ImageGenProvider):
        @property
        def name(self) -> str:
            return "small-one"

        def generate(self, prompt: str, aspect_ratio: str = "landscape", **kwargs: Any) -> Any:
            return error_response(error="no", provider=self.name)

    small = Small()
    assert small.display_name == "Small-One"
    assert small.is_available()
    assert (small.list_models(), small.default_model()) == ([], None)
    assert small.capabilities() == {"modalities": ["text"], "max_reference_images": 0}
    assert small.get_setup_schema() == {
        "name": "Small-One",
        "badge": "",
        "tag": "",
        "env_vars": [],
    }


async def test_drawing_that_blocks_runs_in_a_thread_of_its_own() -> None:
    class Blocking(ImageGenProvider):
        @property
        def name(self) -> str:
            return "blocking"

        def generate(self, prompt: str, aspect_ratio: str = "landscape", **kwargs: Any) -> Any:
            return {"thread": threading.current_thread().daemon, "prompt": prompt, **kwargs}

    assert await Blocking().agenerate("a", image_url="b", seed=1) == {
        "thread": True,
        "prompt": "a",
        "image_url": "b",
        "reference_image_urls": None,
        "seed": 1,
    }


def test_base64_becomes_a_private_file_named_by_provider_and_time(tmp_path: Path) -> None:
    with use_studio(plain_studio(tmp_path / "images")):
        path = save_b64_image(B64, prefix="my backend/../x")
    assert path.is_absolute()
    assert path.read_bytes() == PNG
    assert path.parent == tmp_path / "images"
    assert re.fullmatch(r"my-backend-..-x_\d{8}_\d{6}_[0-9a-f]{8}\.png", path.name)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_the_bytes_are_decides_about_the_ending(make: MakeStudio) -> None:
    import base64

    with use_studio(make()):
        text = "data:image/png;base64," + base64.b64encode(JPEG).decode()
        assert save_b64_image(text, prefix="x", extension="webp").suffix == ".jpg"


@pytest.mark.parametrize("text", ["", "%%%", "data:image/png;base64,"])
def test_what_is_no_base64_is_no_picture(make: MakeStudio, text: str) -> None:
    with use_studio(make()), pytest.raises(ImageFault) as raised:
        save_b64_image(text, prefix="x")
    assert raised.value.kind == "io_error"


def test_a_picture_of_the_web_is_saved(make: MakeStudio, fake: Fake) -> None:
    fake.on("GET /a", Reply(JPEG, kind="image/jpeg; charset=x"))
    with use_studio(make()):
        path = save_url_image(f"{fake.url}/a", prefix="x")
    assert (path.suffix, path.read_bytes()) == (".jpg", JPEG)


async def test_it_is_saved_where_an_event_loop_runs_too(make: MakeStudio, fake: Fake) -> None:
    fake.on("GET /a", Reply(PNG))
    with use_studio(make()):
        assert save_url_image(f"{fake.url}/a", prefix="x").read_bytes() == PNG


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(PAGE, kind="text/html"), "io_error", "text/html instead of an image"),
        (Reply(PAGE, kind="image/png"), "io_error", "not a PNG"),
        (Reply(b"", kind="image/png"), "io_error", "no data"),
        (Reply(png(padding=30 * MB)), "io_error", "larger than 25 MB"),
        (Reply(PNG, 404), "io_error", "returned status 404"),
        (Reply(PNG, delay=5), "timeout", "within 0.2 s"),
    ],
    ids=["page", "page called png", "nothing", "30 MB", "gone", "late"],
)
def test_what_is_no_picture_leaves_no_file(
    make: MakeStudio, fake: Fake, reply: Reply, kind: str, words: str
) -> None:
    fake.on("GET /a", reply)
    studio = make()
    with use_studio(studio), pytest.raises(ImageFault, match=re.escape(words)) as raised:
        save_url_image(f"{fake.url}/a", prefix="x", timeout=0.2 if reply.delay else 60)
    assert raised.value.kind == kind
    assert not studio.cache.folder.exists() or list(studio.cache.folder.iterdir()) == []


def test_addresses_of_this_machine_are_refused(tmp_path: Path, fake: Fake) -> None:
    fake.on("GET /a", Reply(PNG))
    with use_studio(plain_studio(tmp_path)), pytest.raises(ImageFault, match="this machine itself"):
        save_url_image(f"{fake.url}/a", prefix="x")
    with use_studio(plain_studio(tmp_path)), pytest.raises(ImageFault):
        load_source_image("http://169.254.169.254/latest/meta-data")
    assert fake.asked == []


def test_a_source_is_an_address_a_data_url_or_a_file(make: MakeStudio, fake: Fake) -> None:
    fake.on("GET /pics/my%20dog.png", Reply(PNG))
    studio = make()
    studio.cache.folder.mkdir()
    (studio.cache.folder / "cat.png").write_bytes(JPEG)
    with use_studio(studio):
        assert load_source_image(f"{fake.url}/pics/my%20dog.png") == (PNG, "my dog.png")
        assert load_source_image(f"data:image/png;base64,{B64}") == (PNG, "image.png")
        assert load_source_image("cat.png") == (JPEG, "cat.png")


@pytest.mark.parametrize("ref", ["/etc/passwd", "../secret", "missing.png", "notes.txt"])
def test_files_that_may_not_be_read_or_are_no_pictures_are_no_sources(
    make: MakeStudio, ref: str
) -> None:
    studio = make()
    studio.cache.folder.mkdir()
    (studio.cache.folder / "notes.txt").write_text("root:x:0:0")
    with use_studio(studio), pytest.raises(ImageFault) as raised:
        load_source_image(ref)
    assert raised.value.kind == "invalid_argument"


def test_outside_of_drawing_the_helpers_say_what_to_do() -> None:
    with pytest.raises(ImageFault, match=r"hermes\.testing\.image_provider"):
        save_b64_image(B64, prefix="x")


GOOD = {"success": True, "image": "https://a.example/x.png"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "not a dict"),
        ("https://a.example/x.png", "not a dict"),
        ({}, "`success`"),
        ({**GOOD, "success": 1}, "`success`"),
        ({"success": True}, "`image`"),
        ({**GOOD, "image": "x.png"}, "not an absolute path"),
        ({**GOOD, "image": "/no/such/file.png"}, "does not exist"),
        ({**GOOD, "image": "/etc/hostname"}, "is not an image"),
        ({**GOOD, "model": 3}, "is not text"),
        ({**GOOD, "when": object()}, "JSON"),
        ({"success": False}, "`error` says nothing"),
        ({"success": False, "error": "x", "error_type": 1}, "`error_type`"),
    ],
)
def test_answers_of_another_shape_are_named(answer: object, words: str) -> None:
    told = validate_answer(answer, provider="mine", prompt="p", aspect_ratio="square")
    assert told["error_type"] == "invalid_provider_response"
    assert (told["success"], told["provider"]) == (False, "mine")
    assert words in told["error"]


def test_what_a_good_answer_leaves_out_is_filled_in() -> None:
    assert validate_answer(GOOD, provider="mine", prompt="p", aspect_ratio="square") == {
        **GOOD,
        "modality": "text",
        "provider": "mine",
        "prompt": "p",
        "aspect_ratio": "square",
        "model": "",
    }
    told = validate_answer(
        {"success": False, "error": "no"}, provider="mine", prompt="p", aspect_ratio="square"
    )
    assert (told["error"], told["error_type"], told["image"]) == ("no", "provider_error", None)


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.text(), st.integers())))
def test_whatever_comes_is_an_answer_in_the_end(answer: dict[str, object]) -> None:
    told = validate_answer(answer, provider="mine", prompt="p", aspect_ratio="square")
    assert isinstance(told["success"], bool)
    assert isinstance(told["image"], str) or told["error"]


@pytest.mark.parametrize(
    ("price", "found"),
    [
        ("$0.04/image", ImagePrice(usd=0.04)),
        ("$0.15 per image", ImagePrice(usd=0.15)),
        ("$2", ImagePrice(usd=2.0)),
        (0.01, ImagePrice(usd=0.01)),
        ("free", ImagePrice(usd=0.0)),
        ("$0.006/MP", ImagePrice(usd=0.012, estimated=True)),
        ("$0.03-0.09/image", None),
        ("cheap", None),
        ("", None),
        (True, None),
        (None, None),
    ],
)
def test_a_price_counts_where_the_list_tells_it_exactly(price: object, found: ImagePrice) -> None:
    assert price_of([{"id": "a"}, {"id": "b", "price": price}], "b") == found
    assert price_of([], "b") is None
