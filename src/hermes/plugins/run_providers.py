"""Web and speech providers that plugins bring."""

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
from hermes.plugins.surface import SessionId
from hermes.speech.tools import FORMATS, MOST_BYTES, AudioFile, SpeechProviders, Transcription
from hermes.web.tools import SearchHit, WebPage, WebProviders

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.config.settings import Settings
    from hermes.core.tools import Tool
    from hermes.plugins.surface import ServiceKind
    from hermes.tools.toolbox import SessionTools

# The tool that a method of a kind makes possible.
TOOLS: dict[str, tuple[ServiceKind, str]] = {
    "text_to_speech": ("tts", "synthesize"),
    "transcribe": ("stt", "transcribe"),
    "web_extract": ("web", "extract"),
    "web_search": ("web", "search"),
}


class PluginProviders:
    def __init__(self, settings: Settings, tools: SessionTools) -> None:
        self._settings = settings
        self._tools = tools
        self._held: dict[tuple[str, str], Service] = {}

    def add(self, service: Service) -> None:
        self._held[service.offer.kind, service.name] = service

    def pick(self, kind: ServiceKind, method: str) -> Service:
        """The one that the settings name, else the first that can; ToolError."""
        wanted = str(getattr(self._settings, kind).provider)
        named = sorted(name for held, name in self._held if held == kind)
        if wanted and wanted not in named:
            known = ", ".join(named) or "none"
            raise ToolError(f"There is no {kind} provider {wanted!r}; there are: {known}.")
        for name in [wanted] if wanted else named:
            service = self._held[kind, name]
            if service.has(method) and (service.offer.available or wanted):
                return service
        raise ToolError(f"No {kind} provider can do that here; `hermes plugins list` says why.")

    def find(self, kind: ServiceKind, method: str) -> Service | None:
        try:
            return self.pick(kind, method)
        except ToolError:
            return None

    def offer_tools(self) -> None:
        """Those that somebody can answer, and no others."""
        from hermes.tools.catalogue import CatalogueEntry

        for name, (kind, method) in TOOLS.items():
            found = self.find(kind, method)
            entry = None
            if found is not None:
                made = _make_tool(name, found)
                entry = CatalogueEntry(made.spec, made)
            self._tools.offer(name, entry)


def _make_tool(name: str, service: Service) -> Tool:
    if service.offer.kind == "web":
        from hermes.web import tools as web

        pattern = web.web_search if name == "web_search" else web.web_extract
        return web.with_effects(pattern, lambda: service.label)
    from hermes.speech import tools as speech

    pattern = speech.transcribe if name == "transcribe" else speech.text_to_speech
    return speech.with_effects(pattern, lambda: service.label)


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


SECONDS = 60.0


class PluginWeb:
    """`hermes.web.tools.WebProvider`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.recipient = service.label
        self.origin = service.origin

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        told = await self._ask(ctx, "search", query, limit)
        if isinstance(told, dict):
            inner = told.get("data")
            told = inner.get("web") if isinstance(inner, dict) else told.get("results")
        hits = self._read(list[SearchHit], told)[:limit]
        return [replace(hit, position=place) for place, hit in enumerate(hits, 1)]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        told = await self._ask(ctx, "extract", list(urls))
        if isinstance(told, dict):
            told = told.get("results")
        return [page for page in self._read(list[WebPage], told) if page.url in urls]

    async def _ask(self, ctx: ToolContext, method: str, *given: Any) -> Any:
        session_id = ctx.kept(SessionId).id
        told = await self._service.ask(
            method, *given, seconds=SECONDS, session_id=session_id, ctx=ctx
        )
        if isinstance(told, dict) and (error := told.get("error")):
            raise ToolError(f"{self._service.name}: {error}")
        return told

    def _read(self, kind: Any, told: Any) -> Any:
        try:
            return convert(kind, told)
        except DecodeError as error:
            raise ToolError(
                f"What {self._service.name} answers cannot be understood: {error}."
            ) from error


def web_of(services: PluginProviders) -> WebProviders:
    searching, reading = services.find("web", "search"), services.find("web", "extract")
    return WebProviders(
        PluginWeb(searching) if searching else None, PluginWeb(reading) if reading else None
    )
