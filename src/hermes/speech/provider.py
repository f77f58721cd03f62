"""The interfaces of speech providers: text to audio, and audio to text."""

from __future__ import annotations

from typing import Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext


class Sound(Value):
    """A whole audio file. `ending` is its file name extension, without the dot."""

    data: bytes
    ending: str


class Heard(Value):
    text: str
    language: str = ""
    seconds: float | None = None


class Speaker(Protocol):
    """`recipient` names who receives the text, for effects. Raises ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def voice_compatible(self) -> bool: ...

    async def speak(self, ctx: ToolContext, text: str) -> Sound: ...


class Listener(Protocol):
    """What it returns are the words of a speaker, so they have the origin `origin`. Raises
    ToolError."""

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
    """What the tools get from `ToolContext.kept`. `keep` stores a sound for the user and returns
    its path."""

    def __init__(
        self,
        speaker: Speaker | None = None,
        listener: Listener | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.speaker = speaker
        self.listener = listener
        self.keep = keep
