"""Any transcript, whatever happened in it and whoever wrote it, is told whole to any model."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from hermes.core.messages import Message
from hermes.core.prompt import Prompt
from hermes.providers.normalization import ConversationNormalizer
from hermes.providers.pipeline import wire_format
from hermes.providers.wire.format import ImageLoader, WireFormat, images_in
from hermes.testing.wires.table import WIRES as SERVER_WIRES
from tests.judges.judge import Judge
from tests.providers.asking import LOOK
from tests.providers.judges import judge
from tests.providers.telling import told
from tests.providers.told import Think, read
from tests.providers.transcripts import PICTURES, TARGETS, Target, transcripts

VERSION = {"anthropic-version": "2023-06-01"}
EACH = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        # The pictures are the same for all examples.
        HealthCheck.function_scoped_fixture,
    ],
)


@pytest.fixture(autouse=True)
def pictures(tmp_path: Path) -> Iterator[None]:
    """Pictures are told apart by what is in them."""
    before = Path.cwd()
    os.chdir(tmp_path)
    for name in PICTURES:
        Path(name).write_bytes(name.encode())
    yield
    os.chdir(before)


def wire_to(target: Target) -> tuple[WireFormat, ImageLoader]:
    held = ImageLoader()
    kind = wire_format(target.wire)
    return kind(target.endpoint, target.profile, cache_ttl="5m", pictures=held), held


def encoded(
    messages: tuple[Message, ...],
    target: Target,
    grammar: ConversationNormalizer,
    wire: WireFormat,
    held: ImageLoader,
) -> bytes:
    fits = grammar.normalize(messages)
    if any(images_in(fits)):
        asyncio.run(held.load(wire.fragments.missing(fits)))
    prompt = Prompt(system="Be brief.", messages=messages, tools=(LOOK,), effort=target.effort)
    body = wire.encode(prompt, fits)
    held.clear()
    return body


def accepted(target: Target, raw: bytes, types: Judge) -> dict[str, Any]:
    """By the types of the vendor's library, and by two checkers of what types cannot say."""
    body = judge(target.wire, raw)
    assert types.complaints(target.wire, body) == []
    assert list(SERVER_WIRES[target.wire].find_problems(body, VERSION)) == []
    return body


@pytest.fixture(scope="module")
def types() -> Judge:
    return Judge()


# Making up a transcript takes longest: each is told to all models.
def test_any_transcript_is_accepted_and_told_whole(types: Judge) -> None:
    all_are_told(types, EACH)


@pytest.mark.slow
def test_very_many_transcripts_are_accepted_and_told_whole(types: Judge) -> None:
    all_are_told(types, settings(EACH, max_examples=600))


def all_are_told(types: Judge, many: settings) -> None:
    @many
    @given(transcripts())
    def holds(messages: tuple[Message, ...]) -> None:
        for target in TARGETS:
            note(target.model)
            wire, held = wire_to(target)
            body = accepted(
                target, encoded(messages, target, ConversationNormalizer(), wire, held), types
            )
            turns = read(body, target)
            assert turns == told(messages, target)
            seals = [part.seal for turn in turns for part in turn.parts if isinstance(part, Think)]
            assert all(seal.startswith(f"{target.model}#") for seal in seals)

    holds()


@settings(EACH, max_examples=25)
@given(messages=transcripts())
def test_a_request_is_the_same_whether_or_not_its_beginning_was_sent_before(
    messages: tuple[Message, ...],
) -> None:
    for target in TARGETS:
        note(target.model)
        grammar, (wire, held) = ConversationNormalizer(), wire_to(target)
        for size in range(len(messages) + 1):
            grown = encoded(messages[:size], target, grammar, wire, held)
        assert grown == encoded(messages, target, ConversationNormalizer(), *wire_to(target))
        assert json.loads(grown)
