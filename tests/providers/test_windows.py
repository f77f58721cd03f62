from __future__ import annotations

from pathlib import Path

from hermes.providers.learned import LearnedLimits
from hermes.providers.listing import ModelInfo
from hermes.providers.listings import Listing
from hermes.providers.vendor import shipped
from hermes.providers.windows import Window, known

URL = "https://models.test/v1"
LOCAL = "http://127.0.0.1:8000/v1"
CUSTOM = shipped().vendors["custom"]


def listing(**windows: int) -> Listing:
    models = tuple(ModelInfo(id=name, window=window) for name, window in windows.items())
    return Listing(url=URL, at=0, models=models)


def test_the_best_source_comes_first(tmp_path: Path) -> None:
    learned = LearnedLimits(tmp_path / "limits.yaml")
    learned.learn("qwen", URL, 2_000)
    sources = {
        "configured": 1_000,
        "learned": learned,
        "info": ModelInfo(id="qwen", window=3_000),
        "listing": listing(qwen=4_000),
        "registry": listing(qwen=5_000),
    }
    found = []
    for name in (*sources, ""):
        found.append(known(shipped(), CUSTOM, "qwen", URL, **sources))  # type: ignore[arg-type]
        sources = {key: value for key, value in sources.items() if key != name}
    assert found == [
        Window(tokens=1_000, source="user"),
        Window(tokens=2_000, source="learned"),
        Window(tokens=3_000, source="server"),
        Window(tokens=4_000, source="listing"),
        Window(tokens=5_000, source="registry"),
        Window(tokens=131_072, source="family"),
    ]


def test_unknown_models_are_guessed_and_local_ones_carefully() -> None:
    assert known(shipped(), CUSTOM, "new", URL) == Window(tokens=256_000, source="guess")
    assert known(shipped(), CUSTOM, "new", LOCAL) == Window(tokens=32_768, source="guess")


def test_a_guess_after_an_error_yields_to_what_the_provider_says(tmp_path: Path) -> None:
    learned = LearnedLimits(tmp_path / "limits.yaml")
    learned.learn("new", URL, 64_000, guess=True)
    guessed = known(shipped(), CUSTOM, "new", URL, learned=learned)
    told = known(shipped(), CUSTOM, "new", URL, learned=learned, listing=listing(new=100_000))
    assert guessed == Window(tokens=64_000, source="learned")
    assert told == Window(tokens=100_000, source="listing")


def test_a_small_window_is_small_and_no_reason_to_refuse() -> None:
    info = ModelInfo(id="tiny", window=8_192)
    assert known(shipped(), CUSTOM, "tiny", LOCAL, info=info).tokens == 8_192
    assert shipped().endpoint(CUSTOM, "tiny", url=LOCAL, info=info).profile.window == 8_192


def test_lists_of_others_say_nothing_about_a_server_of_ones_own() -> None:
    found = known(shipped(), CUSTOM, "new", LOCAL, registry=listing(new=1_000_000))
    assert found.source == "guess"


def test_a_window_that_is_known_better_goes_into_the_profile() -> None:
    made = shipped().endpoint(CUSTOM, "qwen", url=URL, window=7_000)
    assert made.profile.window == 7_000
