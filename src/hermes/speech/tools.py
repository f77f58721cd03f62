"""The tools for text to speech and transcription, and the interface of their providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from pathlib import PurePath
from typing import Annotated, Protocol

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import CallServer, Effect, ReadPath, WritePath
from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput, tool


class AudioFile(Value):
    """A whole audio file. `ending` is its file name extension, without the dot."""

    data: bytes
    ending: str


class Transcription(Value):
    """The transcript of an audio file."""

    text: str
    language: str = ""
    seconds: float | None = None


class SpeechSynthesizer(Protocol):
    """Converts text to speech. `recipient` names who receives the text, for effects. Raises
    ToolError."""

    @property
    def name(self) -> str: ...

    @property
    def recipient(self) -> str: ...

    @property
    def voice_compatible(self) -> bool: ...

    async def speak(self, ctx: ToolContext, text: str) -> AudioFile: ...


class SpeechRecognizer(Protocol):
    """Transcribes speech. `origin` is the source of the text, because it is written by a speaker
    and not by the user. Raises ToolError."""

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
    """The active providers, which the tools get from `ToolContext.service`. `keep` stores an audio
    file for the user and returns its path."""

    def __init__(
        self,
        speaker: SpeechSynthesizer | None = None,
        listener: SpeechRecognizer | None = None,
        keep: SaveAudio | None = None,
    ) -> None:
        self.speaker = speaker
        self.listener = listener
        self.keep = keep


MOST_CHARS = 20_000
MOST_BYTES = 25 * 1024 * 1024
FORMATS = tuple("mp3 mp4 mpeg mpga m4a wav webm ogg aac flac".split())
NO_PROVIDER = "No provider {does}; install one with `hermes plugins`."


@tool(toolset="tts", kind="execute", conditional=True)
async def text_to_speech(
    ctx: ToolContext,
    text: str,
    output_path: Annotated[str, "File; omit for a generated path"] = "",
) -> ToolOutput:
    """Convert text to speech in an audio file."""
    own = ctx.service(SpeechProviders)
    if own.speaker is None or own.keep is None:
        raise ToolError(NO_PROVIDER.format(does="converts text to speech"))
    if not text.strip() or len(text) > MOST_CHARS:
        raise ToolError(f"The text must have 1 to {MOST_CHARS} characters.")
    sound = await own.speaker.speak(ctx, text)
    if output_path:
        path = ctx.workspace.resolve(output_path)
        await ctx.workspace.write_bytes(path, sound.data)
    else:
        path = await own.keep(sound)
    result: JsonObject = {
        "success": True,
        "file_path": path,
        "media_tag": f"MEDIA:{path}",
        "provider": own.speaker.name,
        "voice_compatible": own.speaker.voice_compatible,
    }
    return ToolOutput(parts=(Text(text=encode(result).decode()),), origin="hermes")


@tool(toolset="tts", conditional=True)
async def transcribe(
    ctx: ToolContext,
    path: Annotated[str, "Audio file"],
    language: Annotated[str, "Such as `en`; omit to detect"] = "",
) -> ToolOutput:
    """Transcribe the speech in an audio file."""
    listener = ctx.service(SpeechProviders).listener
    if listener is None:
        raise ToolError(NO_PROVIDER.format(does="transcribes speech"))
    sound = await _read(ctx, path)
    heard = await listener.listen(ctx, sound, language)
    result: JsonObject = {
        "success": True,
        "transcript": heard.text,
        "provider": listener.name,
        "language": heard.language or language,
        "duration": heard.seconds,
    }
    return ToolOutput(parts=(Text(text=encode(result).decode()),), origin=listener.origin)


async def _read(ctx: ToolContext, path: str) -> AudioFile:
    ending = PurePath(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ToolError(f"{path} is not a supported audio file; use {', '.join(FORMATS)}.")
    whole = ctx.workspace.resolve(path)
    info = await ctx.workspace.stat(whole)
    if info is None or info.kind != "file":
        raise ToolError(f"There is no file {path}.")
    if info.size > MOST_BYTES:
        raise ToolError(f"{path} is larger than {MOST_BYTES // 1024 // 1024} MB.")
    return AudioFile(data=await ctx.workspace.read_bytes(whole), ending=ending)


def with_effects(pattern: Tool, recipient: Callable[[], str]) -> Tool:
    """Return the same tool with its effects: the recipient of the text, and the files."""

    def effects(paths: PathContext, arguments: JsonObject) -> Iterator[Effect]:
        yield CallServer(
            server=recipient(), tool=pattern.name, arguments=encode(arguments).decode()
        )
        if path := arguments.get("path"):
            yield ReadPath(path=paths.resolve(str(path)))
        if path := arguments.get("output_path"):
            yield WritePath(path=paths.resolve(str(path)))

    made = copy(pattern)
    made.effects = effects
    return made
