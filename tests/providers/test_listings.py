from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient
from hermes.providers.model_listing import ModelInfo
from hermes.providers.model_servers import ModelListing, ModelListingCache
from hermes.providers.profile import ModelPrice
from tests.providers.asking import NapClock, endpoint
from tests.providers.fake_servers import VLLM, serving

URL = "https://models.test/v1"
MODELS = (
    ModelInfo(id="maker/one", window=5, price=ModelPrice(input=1, output=2, cache_read=0.5)),
    ModelInfo(id="two", tools=False),
)


def kept_at(clock: NapClock) -> ModelListing:
    return ModelListing(url=URL, at=clock.now(), models=MODELS)


def test_a_list_is_kept_between_runs(tmp_path: Path) -> None:
    clock = NapClock()
    ModelListingCache(tmp_path / "cache", clock).store(kept_at(clock))
    found = ModelListingCache(tmp_path / "cache", clock).fresh(URL)
    assert found == kept_at(clock)
    assert ModelListingCache(tmp_path / "cache", clock).cached(f"{URL}/other") is None
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".json"]


async def test_an_old_list_is_kept_but_not_fresh(tmp_path: Path) -> None:
    clock = NapClock()
    listings = ModelListingCache(tmp_path, clock, seconds=3600)
    listings.store(kept_at(clock))
    await clock.sleep(3599)
    assert listings.fresh(URL) is not None
    await clock.sleep(1)
    assert listings.fresh(URL) is None
    assert listings.cached(URL) is not None


def test_a_list_from_the_future_is_not_fresh(tmp_path: Path) -> None:
    clock = NapClock()
    listings = ModelListingCache(tmp_path, clock)
    listings.store(ModelListing(url=URL, at=clock.now() + 10, models=MODELS))
    assert listings.fresh(URL) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"url": 5}', b"\xff\xfe"])
def test_a_damaged_file_is_no_list(tmp_path: Path, damage: bytes) -> None:
    clock = NapClock()
    listings = ModelListingCache(tmp_path, clock)
    listings.store(kept_at(clock))
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert listings.cached(URL) is None
    listings.store(kept_at(clock))
    assert listings.fresh(URL) == kept_at(clock)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    clock = NapClock()
    listings = ModelListingCache(tmp_path / "file" / "cache", clock)
    listings.store(kept_at(clock))
    assert listings.cached(URL) is None


async def test_a_server_is_asked_once_an_hour(tmp_path: Path, http: HttpClient) -> None:
    clock = NapClock()
    listings = ModelListingCache(tmp_path, clock)
    async with serving(VLLM) as server:
        at = endpoint("chat", server.url)
        first = await listings.fetch(http, at)
        assert await listings.fetch(http, at) == first
        assert server.asked.count("GET /v1/models") == 1
        await listings.fetch(http, at, refresh=True)
        await clock.sleep(3600)
        await listings.fetch(http, at)
        assert server.asked.count("GET /v1/models") == 3
    assert first.find("qwen3-8b") == ModelInfo(id="Qwen/Qwen3-8B", window=24_576)
    assert first.server == "vllm"


async def test_a_failed_fetch_leaves_what_is_kept(tmp_path: Path, http: HttpClient) -> None:
    clock = NapClock()
    listings = ModelListingCache(tmp_path, clock)
    async with serving(VLLM) as server:
        at = endpoint("chat", server.url)
        await listings.fetch(http, at)
        server.pages.clear()
        with pytest.raises(ProviderError):
            await listings.fetch(http, at, refresh=True)
    assert listings.fresh(at.url) is not None


def test_models_are_found_with_and_without_their_makers() -> None:
    listing = ModelListing(url=URL, at=0, models=MODELS)
    assert listing.find("MAKER/one") == listing.find("one") == MODELS[0]
    assert listing.find("two") == MODELS[1]
    assert listing.find("three") is None
