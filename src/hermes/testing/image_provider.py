"""The contract test suite for image providers."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.world import World
from hermes.images.generator import validate_answer
from hermes.images.provider import VALID_ASPECT_RATIOS, ImageGenProvider
from hermes.images.storage import MAX_BYTES, ImageCache, ImageFault
from hermes.images.studio import Studio, use_studio
from hermes.policy.rules import Blocked
from hermes.policy.urls.url_policy import make_url_policy
from hermes.web.fetcher import WebFetcher

AVAILABLE_SECONDS = 0.05
# No server listens at this port.
NOWHERE = "http://127.0.0.1:9"


def plain_studio(
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    settings: JsonObject | None = None,
    world: World | None = None,
    private: bool = False,
) -> Studio:
    """A studio for tests. Images are stored in `folder`, the only folder from which sources are
    read. The web policy applies; `private` permits this machine, for test servers."""
    values, world = dict(env or {}), world or World()

    def read(path: str) -> bytes:
        file_path = Path(folder, path).resolve()
        if not file_path.is_relative_to(folder.resolve()):
            raise ImageFault(f"{path} is not in {folder}.", kind="invalid_argument")
        try:
            with file_path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ImageFault(f"{path} cannot be read.", kind="invalid_argument") from error

    return Studio(
        cache=ImageCache(folder, world),
        world=world,
        fetcher=WebFetcher(make_url_policy(None, private, Blocked(), time.monotonic)),
        read=read,
        secret=lambda name: values.get(name, ""),
        settings=settings,
    )


@contextmanager
def studio(
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    settings: JsonObject | None = None,
    private: bool = True,
) -> Iterator[Studio]:
    """Within the block, `save_b64_image` and the other helpers save images to this folder.
    `private` allows fetching from servers on this machine."""
    made = plain_studio(folder, env=env, settings=settings, private=private)
    with use_studio(made):
        yield made


class ImageGenProviderContract(ABC):
    """Derive it in your tests as `class TestMine(ImageGenProviderContract)`. `provider` returns one
    that cannot reach its server; `works`, if possible without a network, returns one that
    generates images."""

    @abstractmethod
    def provider(self, tmp_path: Path) -> ImageGenProvider: ...

    def works(self, tmp_path: Path) -> ImageGenProvider | None:
        return None

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Path]:
        with studio(tmp_path):
            yield tmp_path

    def test_the_name_is_valid_in_settings(self, place: Path) -> None:
        provider = self.provider(place)
        assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", provider.name)
        assert provider.name == self.provider(place).name
        assert provider.display_name

    def test_is_available_returns_at_once(self, place: Path) -> None:
        provider = self.provider(place)
        provider.is_available()
        began = time.thread_time()
        assert isinstance(provider.is_available(), bool)
        assert time.thread_time() - began < AVAILABLE_SECONDS

    def test_models_have_ids_and_the_default_is_one_of_them(self, place: Path) -> None:
        provider = self.provider(place)
        models = provider.list_models()
        ids = [model["id"] for model in models]
        assert all(isinstance(id, str) and id for id in ids)
        assert len(ids) == len(set(ids))
        default = provider.default_model()
        assert default is None or isinstance(default, str)
        assert not ids or default in ids
        encode(models)

    def test_setup_schema_and_capabilities_are_valid(self, place: Path) -> None:
        provider = self.provider(place)
        schema, can = provider.get_setup_schema(), provider.capabilities()
        assert isinstance(schema["name"], str)
        assert all(isinstance(each["key"], str) for each in schema.get("env_vars", []))
        assert "text" in can["modalities"]
        assert int(can["max_reference_images"]) >= 0
        assert ("image" in can["modalities"]) == bool(can["max_reference_images"])

    def test_an_empty_prompt_fails(self, place: Path) -> None:
        answer = self.provider(place).generate("   ")
        _check(answer)
        assert not answer["success"]

    def test_unknown_options_are_ignored(self, place: Path) -> None:
        _check(
            self.provider(place).generate("a corgi", model="no-such-model", seed=7, sparkle=True)
        )

    @pytest.mark.parametrize("aspect", [*VALID_ASPECT_RATIOS, "16:9", ""])
    def test_every_aspect_ratio_becomes_a_valid_one(self, place: Path, aspect: str) -> None:
        answer = self.provider(place).generate("a corgi", aspect)
        _check(answer)
        wanted = aspect if aspect in VALID_ASPECT_RATIOS else "landscape"
        assert answer["aspect_ratio"] == wanted

    def test_an_unreachable_server_is_reported_without_an_exception(self, place: Path) -> None:
        answer = self.provider(place).generate("a corgi", image_url=f"{NOWHERE}/a.png")
        _check(answer)

    async def test_agenerate_gives_a_valid_answer(self, place: Path) -> None:
        _check(await self.provider(place).agenerate("a corgi", "square"))

    def test_a_generated_image_is_a_valid_answer(self, place: Path) -> None:
        provider = self.works(place)
        if provider is None:
            pytest.skip("this provider needs its server")
        answer = provider.generate("a corgi", "portrait")
        _check(answer)
        assert answer["success"], answer.get("error")
        assert answer["aspect_ratio"] == "portrait"


def _check(answer: object) -> None:
    assert isinstance(answer, dict), f"{answer!r} is not a dict"
    checked = validate_answer(answer, provider="it", prompt="", aspect_ratio="")
    assert checked.get("error_type") != "invalid_provider_response", checked["error"]
    for key in ("success", "image", "model", "prompt", "aspect_ratio", "provider"):
        assert key in answer, f"{key} is missing in {answer!r}"
    if answer["success"]:
        assert answer["modality"] in ("text", "image")
