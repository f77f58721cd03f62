"""A bundled provider that asks a fake server instead of its own."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.images.hosted import HostedProvider
from hermes.images.registry import ImageProviders
from hermes.images.studio import Studio
from tests.images.fakes import Fake


def bundled(
    studio: Studio, name: str, fake: Fake | None = None, *, path: str = ""
) -> HostedProvider:
    found = ImageProviders(studio).get_provider(name)
    assert isinstance(found, HostedProvider)
    if fake is not None:
        found.url = fake.url + path
    return found


def drawn(answer: JsonObject) -> bytes:
    """The picture of an answer that must be good."""
    assert answer["success"], answer
    return Path(answer["image"]).read_bytes()


def fault(answer: JsonObject) -> tuple[str, str]:
    """Kind and words of an answer that must not be good."""
    assert not answer["success"]
    assert answer["image"] is None
    return answer["error_type"], answer["error"]
