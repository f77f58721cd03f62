"""The interfaces of speech providers: text to audio, and audio to text."""

from __future__ import annotations

from typing import Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext


class AudioFile(Value):
    """A whole audio file. `ending` is its file name extension, without the dot."""

    data: bytes
    ending: str


class Transcription(Value):
    text: str
    language: str = ""
    seconds: float | None = None


class SpeechSynthesizer(Protocol):
    """`recipient` names who receives the text, for effects. Raises ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def voice_compatible(self) -> bool: ...

    async def speak(self, ctx: ToolContext, text: str) -> AudioFile: ...


class SpeechRecognizer(Protocol):
    """What it returns are the words of a speaker, so they have the origin `origin`. Raises
    ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def origin(self) -> str: ...

    async def listen(self, ctx: ToolContext, sound: AudioFile, language: str) -> Transcription: ...


class SaveAudio(Protocol):
    async def __call__(self, sound: AudioFile) -> str: ...


class SpeechProviders:
    """What the tools get from `ToolContext.kept`. `keep` stores a sound for the user and returns
    its path."""

    def __init__(
        self,
        speaker: SpeechSynthesizer | None = None,
        listener: SpeechRecognizer | None = None,
        keep: SaveAudio | None = None,
    ) -> None:
        self.speaker = speaker
        self.listener = listener
        self.keep = keep
