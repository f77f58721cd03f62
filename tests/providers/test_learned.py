from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from hermes.core.errors import ProviderError, Reason
from hermes.providers.context_window import LearnedWindow, LearnedWindows, window_after
from hermes.providers.failures import classify
from tests.providers.asking import endpoint

URL = "http://127.0.0.1:8000/v1"


def test_what_was_learned_is_known_in_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "home" / "context_length_cache.yaml"
    LearnedWindows(path).learn("qwen3:8b", URL, 32768)
    LearnedWindows(path).learn("m", f"{URL}/", 16_000, guess=True)
    again = LearnedWindows(path)
    assert again.window("qwen3:8b", URL) == LearnedWindow(tokens=32768)
    assert again.window("m", URL) == LearnedWindow(tokens=16_000, guess=True)
    assert again.window("qwen3:8b", "http://elsewhere/v1") is None


def test_the_file_is_yaml_that_people_may_edit(tmp_path: Path) -> None:
    path = tmp_path / "limits.yaml"
    LearnedWindows(path).learn('odd "name": #1', URL, 8000)
    LearnedWindows(path).learn("qwen3:8b", URL, 32768, guess=True)
    held = YAML(typ="safe").load(path)
    assert held == {f'odd "name": #1@{URL}': 8000, f"qwen3:8b@{URL}": 32768}


def test_lines_of_other_hands_are_read(tmp_path: Path) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text(
        "# mine\ncontext_lengths:\n  plain@http://x/v1: 9000\n  'q:1b@http://x/v1': 7000 # why\n"
        "broken\nsome@http://x/v1: many\n"
    )
    limits = LearnedWindows(path)
    assert limits.window("plain", "http://x/v1") == LearnedWindow(tokens=9000)
    assert limits.window("q:1b", "http://x/v1") == LearnedWindow(tokens=7000)
    assert limits.window("some", "http://x/v1") is None


def test_a_named_number_replaces_a_guess_and_not_the_other_way_round(tmp_path: Path) -> None:
    limits = LearnedWindows(tmp_path / "limits.yaml")
    limits.learn("m", URL, 64_000, guess=True)
    limits.learn("m", URL, 128_000, guess=True)
    assert limits.window("m", URL) == LearnedWindow(tokens=64_000, guess=True)
    limits.learn("m", URL, 100_000)
    assert limits.window("m", URL) == LearnedWindow(tokens=100_000)
    limits.forget("m", URL)
    assert LearnedWindows(tmp_path / "limits.yaml").window("m", URL) is None


def test_two_processes_do_not_forget_each_others_lessons(tmp_path: Path) -> None:
    one, two = (LearnedWindows(tmp_path / "limits.yaml") for _ in range(2))
    one.learn("a", URL, 1_000)
    two.learn("b", URL, 2_000)
    one.learn("c", URL, 3_000)
    found = LearnedWindows(tmp_path / "limits.yaml")
    known = [found.window(name, URL) for name in "abc"]
    assert known == [LearnedWindow(tokens=n * 1_000) for n in (1, 2, 3)]


def test_a_file_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe\x00")
    assert LearnedWindows(tmp_path / "file").window("m", URL) is None
    blocked = LearnedWindows(tmp_path / "file" / "limits.yaml")
    blocked.learn("m", URL, 5_000)
    assert blocked.window("m", URL) == LearnedWindow(tokens=5_000)


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=20)


@given(NAMES, NAMES, st.integers(100, 10_000_000), st.booleans())
def test_any_name_comes_back(
    tmp_path_factory: pytest.TempPathFactory, model: str, url: str, tokens: int, guess: bool
) -> None:
    path = tmp_path_factory.mktemp("limits") / "limits.yaml"
    LearnedWindows(path).learn(model, url, tokens, guess=guess)
    assert LearnedWindows(path).window(model, url) == LearnedWindow(tokens=tokens, guess=guess)


def overflow(reason: Reason = "context_overflow", limit: int | None = None) -> ProviderError:
    return ProviderError("too long", reason=reason, limit=limit)


@pytest.mark.parametrize(
    ("error", "window", "lesson"),
    [
        (overflow(limit=32768), 256_000, LearnedWindow(tokens=32768)),
        (overflow(limit=300_000), 256_000, None),
        (overflow(), 1_000_000, LearnedWindow(tokens=256_000, guess=True)),
        (overflow(), 256_000, LearnedWindow(tokens=128_000, guess=True)),
        (overflow(), 131_072, LearnedWindow(tokens=128_000, guess=True)),
        (overflow(), 40_000, LearnedWindow(tokens=32_000, guess=True)),
        (overflow(), 8_000, None),
        (overflow("payload_too_large"), 256_000, None),
        (overflow("payload_too_large", 64_000), 256_000, LearnedWindow(tokens=64_000)),
        (overflow("rate_limit"), 256_000, None),
    ],
)
def test_an_overflow_lowers_the_window(
    error: ProviderError, window: int, lesson: LearnedWindow | None
) -> None:
    assert window_after(error, window) == lesson


def test_the_words_of_a_server_are_learned(tmp_path: Path) -> None:
    body = '{"error": {"message": "This model\'s maximum context length is 32768 tokens."}}'
    error = classify(endpoint("chat", "http://x"), status=400, body=body)
    lesson = window_after(error, 131_072)
    assert lesson == LearnedWindow(tokens=32768)
