"""Who speaks and who listens: a text becomes a sound file, a sound file becomes a text."""

from __future__ import annotations

from typing import Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext


class Sound(Value):
    """A sound file, whole. `ending` is that of its name, without the dot."""

    data: bytes
    ending: str


class Heard(Value):
    text: str
    language: str = ""
    seconds: float | None = None


class Speaker(Protocol):
    """`recipient` is who gets to know the text, as effects name them. ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def voice_compatible(self) -> bool: ...

    async def speak(self, ctx: ToolContext, text: str) -> Sound: ...


class Listener(Protocol):
    """What it hears are the words of whoever speaks there: they are from `origin`. ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def origin(self) -> str: ...

    async def listen(self, ctx: ToolContext, sound: Sound, language: str) -> Heard: ...


class Keep(Protocol):
    async def __call__(self, sound: Sound) -> str: ...


class Speech:
    """What the tools find with `ToolContext.kept`. `keep` puts a sound where the person finds it,
    and tells where that is."""

    def __init__(
        self,
        speaker: Speaker | None = None,
        listener: Listener | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.speaker = speaker
        self.listener = listener
        self.keep = keep
