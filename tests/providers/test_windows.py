from __future__ import annotations

from pathlib import Path

from hermes.providers.context_window import ContextWindow, LearnedWindows, context_window
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.model_listing import ModelInfo
from hermes.providers.model_servers import ModelListing

URL = "https://models.test/v1"
LOCAL = "http://127.0.0.1:8000/v1"
CUSTOM = shipped_catalogue().vendors["custom"]


def listing(**windows: int) -> ModelListing:
    models = tuple(ModelInfo(id=name, window=window) for name, window in windows.items())
    return ModelListing(url=URL, at=0, models=models)


def test_the_best_source_comes_first(tmp_path: Path) -> None:
    learned = LearnedWindows(tmp_path / "limits.yaml")
    learned.learn("qwen", URL, 2_000)
    sources = {
        "configured": 1_000,
        "learned": learned,
        "listing": listing(qwen=4_000),
    }
    found = []
    for name in (*sources, ""):
        found.append(context_window(shipped_catalogue(), CUSTOM, "qwen", URL, **sources))  # type: ignore[arg-type]
        sources = {key: value for key, value in sources.items() if key != name}
    assert found == [
        ContextWindow(tokens=1_000, source="user"),
        ContextWindow(tokens=2_000, source="learned"),
        ContextWindow(tokens=4_000, source="listing"),
        ContextWindow(tokens=131_072, source="family"),
    ]


def test_unknown_models_are_guessed_and_local_ones_carefully() -> None:
    assert context_window(shipped_catalogue(), CUSTOM, "new", URL) == ContextWindow(
        tokens=256_000, source="guess"
    )
    assert context_window(shipped_catalogue(), CUSTOM, "new", LOCAL) == ContextWindow(
        tokens=32_768, source="guess"
    )


def test_a_guess_after_an_error_yields_to_what_the_provider_says(tmp_path: Path) -> None:
    learned = LearnedWindows(tmp_path / "limits.yaml")
    learned.learn("new", URL, 64_000, guess=True)
    guessed = context_window(shipped_catalogue(), CUSTOM, "new", URL, learned=learned)
    told = context_window(
        shipped_catalogue(), CUSTOM, "new", URL, learned=learned, listing=listing(new=100_000)
    )
    assert guessed == ContextWindow(tokens=64_000, source="learned")
    assert told == ContextWindow(tokens=100_000, source="listing")


def test_a_small_window_is_small_and_no_reason_to_refuse() -> None:
    info = ModelInfo(id="tiny", window=8_192)
    assert (
        shipped_catalogue().endpoint(CUSTOM, "tiny", url=LOCAL, info=info).profile.window == 8_192
    )


def test_a_window_that_is_known_better_goes_into_the_profile() -> None:
    made = shipped_catalogue().endpoint(CUSTOM, "qwen", url=URL, window=7_000)
    assert made.profile.window == 7_000
