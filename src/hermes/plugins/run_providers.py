"""Web and speech providers of plugins. `web/run_web.py` offers the web tools."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext
from hermes.plugins.integration import Service
from hermes.speech.tools import FORMATS, MOST_BYTES, AudioFile, SpeechProviders, Transcription
from hermes.web.provider import SearchHit, WebPage, WebProviders

if TYPE_CHECKING:
    from hermes.config.provider_settings import WebSettings
    from hermes.config.run_context import RunContext
    from hermes.config.settings import Settings
    from hermes.core.tools import Tool
    from hermes.plugins.surface import ServiceKind
    from hermes.tools.toolbox import SessionTools

# Tools, and the kind and method of the provider that each one needs.
TOOLS: dict[str, tuple[ServiceKind, str]] = {
    "text_to_speech": ("tts", "synthesize"),
    "transcribe": ("stt", "transcribe"),
}


class PluginProviders:
    def __init__(self, settings: Settings, tools: SessionTools) -> None:
        self._settings = settings
        self._tools = tools
        self._services: dict[tuple[str, str], Service] = {}

    def add(self, service: Service) -> None:
        self._services[service.offer.kind, service.name] = service

    def find(self, kind: ServiceKind, method: str) -> Service | None:
        """Return the configured provider, else the first available one."""
        return self._find(kind, method, str(getattr(self._settings, kind).provider))

    def find_web(self, method: str, wanted: str) -> Service | None:
        """Return the web provider of this name, else the first available one."""
        return self._find("web", method, wanted)

    def _find(self, kind: ServiceKind, method: str, wanted: str) -> Service | None:
        for (service_kind, name), service in sorted(self._services.items()):
            chosen = name == wanted if wanted else service.offer.available
            if service_kind == kind and chosen and service.has(method):
                return service
        return None

    def offer_tools(self) -> None:
        """Offer exactly the tools that have a provider."""
        from hermes.tools.catalogue import CatalogueEntry

        for name, (kind, method) in TOOLS.items():
            found = self.find(kind, method)
            tool = _make_tool(name, found) if found else None
            self._tools.offer(name, CatalogueEntry(tool.spec, tool) if tool else None)


def _make_tool(name: str, service: Service) -> Tool:
    from hermes.speech import tools as speech

    return speech.with_effects(getattr(speech, name), lambda: service.label)


FOLDER = "audio"
SYNTHESIS_SECONDS = 60.0
TRANSCRIPTION_SECONDS = 120.0


class _SpeechAdapter:
    def __init__(self, run: RunContext, service: Service) -> None:
        self._run = run
        self._service = service
        self.name = service.name
        self.recipient = service.label
        self.origin = service.origin
        self.voice_compatible = bool(service.offer.facts.get("voice_compatible"))


class PluginSpeaker(_SpeechAdapter):
    """A `SpeechSynthesizer`."""

    async def speak(self, ctx: ToolContext, text: str) -> AudioFile:
        own, service = self._run.settings.tts, self._service
        ending = str(own.format or service.offer.facts.get("format")).lower()
        ending = ending if ending in FORMATS else "wav"
        file = f"speech-{_random_suffix(self._run)}.{ending}"
        path = service.data / file
        try:
            result = await service.ask(
                "synthesize",
                text,
                str(path),
                seconds=SYNTHESIS_SECONDS,
                ctx=ctx,
                voice=own.voice or None,
                model=own.model or None,
                speed=own.speed,
                format=ending,
            )
            _check(service, result)
            return AudioFile(
                data=await asyncio.to_thread(_read_audio, service, file), ending=ending
            )
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)


class PluginListener(_SpeechAdapter):
    """A `SpeechRecognizer`."""

    async def listen(self, ctx: ToolContext, audio: AudioFile, language: str) -> Transcription:
        own, service = self._run.settings.stt, self._service
        path = service.data / f"heard-{_random_suffix(self._run)}.{audio.ending}"
        try:
            await asyncio.to_thread(_write_new, path, audio.data)
            result = await service.ask(
                "transcribe",
                str(path),
                seconds=TRANSCRIPTION_SECONDS,
                ctx=ctx,
                language=language or own.language or None,
                model=own.model or None,
            )
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        _check(service, result)
        return _transcript(service, result)


def speech_of(run: RunContext, services: PluginProviders) -> SpeechProviders:
    speaker, listener = services.find("tts", "synthesize"), services.find("stt", "transcribe")

    async def keep(sound: AudioFile) -> str:
        """Save the audio in the cache under a timestamped name."""
        folder = run.home.cache / FOLDER
        stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(run.world.clock.now()))
        name = f"tts_{stamp}_{_random_suffix(run)}.{sound.ending}"
        await asyncio.to_thread(_write_new, folder / name, sound.data)
        return str(folder / name)

    return SpeechProviders(
        PluginSpeaker(run, speaker) if speaker else None,
        PluginListener(run, listener) if listener else None,
        keep,
    )


def _random_suffix(run: RunContext) -> str:
    return run.world.chance.randbytes(4).hex()


def _check(service: Service, result: Any) -> None:
    if isinstance(result, dict) and (result.get("error") or result.get("success") is False):
        raise ToolError(f"{service.name}: {result.get('error') or 'it reported no reason'}")


def _transcript(service: Service, result: Any) -> Transcription:
    if isinstance(result, str):
        return Transcription(text=result)
    text = result.get("transcript", result.get("text")) if isinstance(result, dict) else None
    if not isinstance(text, str):
        raise ToolError(f"{service.name} returned no transcript.")
    seconds = result.get("duration")
    return Transcription(
        text=text,
        language=str(result.get("language") or ""),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
    )


def _write_new(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _read_audio(service: Service, name: str) -> bytes:
    """Read the plugin's output if it is a regular file. A link could point to a file that the
    plugin itself cannot read."""
    folder = os.open(service.data, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        raise ToolError(f"{service.name} wrote no audio file.") from None
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
            raise ToolError(f"{service.name} wrote no audio file.")
        data = file.read(MOST_BYTES + 1)
    if not data or len(data) > MOST_BYTES:
        raise ToolError(f"The audio file of {service.name} is empty or too large.")
    return data


SECONDS = 60.0


class PluginWeb:
    """A `WebProvider`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.recipient = service.label
        self.origin = service.origin

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        result = await self._ask(ctx, "search", query, limit)
        if isinstance(result, dict):
            inner = result.get("data")
            result = inner.get("web") if isinstance(inner, dict) else result.get("results")
        hits = self._read(list[SearchHit], result)[:limit]
        return [replace(hit, position=position) for position, hit in enumerate(hits, 1)]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        result = await self._ask(ctx, "extract", list(urls))
        if isinstance(result, dict):
            result = result.get("results")
        return [page for page in self._read(list[WebPage], result) if page.url in urls]

    async def _ask(self, ctx: ToolContext, method: str, *arguments: Any) -> Any:
        result = await self._service.ask(method, *arguments, seconds=SECONDS, ctx=ctx)
        if isinstance(result, dict) and (error := result.get("error")):
            raise ToolError(f"{self._service.name}: {error}")
        return result

    def _read(self, kind: Any, result: Any) -> Any:
        try:
            return convert(kind, result)
        except DecodeError as error:
            raise ToolError(f"Invalid answer from {self._service.name}: {error}.") from error


def web_of(services: PluginProviders, settings: WebSettings) -> WebProviders:
    """Return the providers of plugins, as far as there are any."""
    searching = services.find_web("search", settings.search_backend or settings.backend)
    reading = services.find_web("extract", settings.extract_backend or settings.backend)
    return WebProviders(
        PluginWeb(searching) if searching else None, PluginWeb(reading) if reading else None
    )
