"""Speaking and listening providers of plugins, as the tools ask them: sounds go through the folder
that is the plugin's own, which is all that it sees."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext
from hermes.plugins.integration import Service
from hermes.plugins.surface import SessionId
from hermes.speech.tools import FORMATS, MOST_BYTES, AudioFile, SpeechProviders, Transcription

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.plugins.providers import PluginProviders

FOLDER = "audio"
SPEAK_SECONDS = 60.0
LISTEN_SECONDS = 120.0


class PluginSpeaker:
    """`hermes.speech.tools.Speaker`."""

    def __init__(self, run: RunContext, service: Service) -> None:
        self._run = run
        self._service = service
        self.name = service.name
        self.recipient = service.label
        self.voice_compatible = bool(service.offer.facts.get("voice_compatible"))

    async def speak(self, ctx: ToolContext, text: str) -> AudioFile:
        own, service = self._run.settings.tts, self._service
        ending = _ending(own.format or service.offer.facts.get("format"))
        file = f"speech-{_random_suffix(self._run)}.{ending}"
        path = service.data / file
        try:
            told = await service.ask(
                "synthesize",
                text,
                str(path),
                seconds=SPEAK_SECONDS,
                session_id=ctx.kept(SessionId).id,
                ctx=ctx,
                voice=own.voice or None,
                model=own.model or None,
                speed=own.speed,
                format=ending,
            )
            _check(service, told)
            return AudioFile(
                data=await asyncio.to_thread(_read_sound, service, file), ending=ending
            )
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)


class PluginListener:
    """`hermes.speech.tools.Listener`."""

    def __init__(self, run: RunContext, service: Service) -> None:
        self._run = run
        self._service = service
        self.name = service.name
        self.recipient = service.label
        self.origin = service.origin

    async def listen(self, ctx: ToolContext, sound: AudioFile, language: str) -> Transcription:
        own, service = self._run.settings.stt, self._service
        path = service.data / f"heard-{_random_suffix(self._run)}.{sound.ending}"
        try:
            await asyncio.to_thread(_put, path, sound.data)
            told = await service.ask(
                "transcribe",
                str(path),
                seconds=LISTEN_SECONDS,
                session_id=ctx.kept(SessionId).id,
                ctx=ctx,
                language=language or own.language or None,
                model=own.model or None,
            )
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        _check(service, told)
        return _transcript(service, told)


def speech_of(run: RunContext, services: PluginProviders) -> SpeechProviders:
    speaking, listening = services.find("tts", "synthesize"), services.find("stt", "transcribe")

    async def keep(sound: AudioFile) -> str:
        """In a place of its own, by the time."""
        folder = run.home.cache / FOLDER
        stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(run.world.clock.now()))
        name = f"tts_{stamp}_{_random_suffix(run)}.{sound.ending}"
        await asyncio.to_thread(_put, folder / name, sound.data)
        return str(folder / name)

    return SpeechProviders(
        PluginSpeaker(run, speaking) if speaking else None,
        PluginListener(run, listening) if listening else None,
        keep,
    )


def _random_suffix(run: RunContext) -> str:
    return run.world.chance.randbytes(4).hex()


def _ending(told: Any) -> str:
    ending = str(told or "wav").lower()
    return ending if ending in FORMATS else "wav"


def _check(service: Service, told: Any) -> None:
    if isinstance(told, dict) and (told.get("error") or told.get("success") is False):
        raise ToolError(f"{service.name}: {told.get('error') or 'it did not work'}")


def _transcript(service: Service, told: Any) -> Transcription:
    if isinstance(told, str):
        return Transcription(text=told)
    text = told.get("transcript", told.get("text")) if isinstance(told, dict) else None
    if not isinstance(text, str):
        raise ToolError(f"{service.name} did not say what it heard.")
    seconds = told.get("duration")
    return Transcription(
        text=text,
        language=str(told.get("language") or ""),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
    )


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(made, "wb") as file:
        file.write(data)


def _read_sound(service: Service, name: str) -> bytes:
    """What the plugin wrote under this name, if it is a plain file of its own. A link there would
    lead to what the plugin itself cannot read."""
    folder = os.open(service.data, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        raise ToolError(f"{service.name} has written no sound file.") from None
    finally:
        os.close(folder)
    with os.fdopen(found, "rb") as file:
        known = os.fstat(found)
        if not stat.S_ISREG(known.st_mode) or known.st_nlink != 1:
            raise ToolError(f"{service.name} has written no sound file.")
        data = file.read(MOST_BYTES + 1)
    if not data or len(data) > MOST_BYTES:
        raise ToolError(f"The sound file of {service.name} has {known.st_size} bytes.")
    return data
