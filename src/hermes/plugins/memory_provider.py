"""Adapts memory providers of plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hermes.context.plugin_engine import PlainMessages
from hermes.core.messages import Message
from hermes.memory.entries import Action, Target
from hermes.memory.provider import MemoryProvider, ProviderContext, SwitchCause
from hermes.plugins.integration import Service
from hermes.policy.threat_scan import scan_for_threats

log = logging.getLogger(__name__)

SECONDS = 30.0
MAX_CHARS = 10_000
MAX_MESSAGES = 200


class PluginMemory(MemoryProvider):
    """A memory provider in a plugin. Its text is treated as data, and text that looks like
    instructions is dropped. The provider learns only its own folder."""

    def __init__(self, service: Service, *, profile: str) -> None:
        self._service = service
        self._profile = profile
        self._session = ""
        self.name = service.name

    def is_available(self) -> bool:
        return self._service.offer.available

    def system_prompt_block(self) -> str:
        return _safe(self._service.offer.facts.get("system_prompt_block"))

    async def initialize(self, began: ProviderContext) -> None:
        self._session = began.session_id
        await self._ask(
            "initialize",
            began.session_id,
            hermes_home=str(self._service.data),
            platform=began.platform,
            user_id=began.person,
            profile=self._profile,
            session_key=began.session_id,
            context=began.context,
        )

    async def prefetch(self, query: str) -> str:
        return _safe(await self._ask("prefetch", query))

    async def queue_prefetch(self, query: str) -> None:
        await self._ask("queue_prefetch", query)

    async def on_turn_start(self, number: int, message: str) -> None:
        await self._ask("on_turn_start", number, message)

    async def sync_turn(self, user: str, assistant: str, *, trusted: bool) -> None:
        messages = [
            {"role": "user", "content": user},
            {"role": "assistant", "content": assistant},
        ]
        await self._ask("sync_turn", user, assistant, messages=messages, trusted=trusted)

    async def on_session_end(self, messages: Sequence[Message]) -> None:
        await self._ask("on_session_end", _text(messages))

    async def on_session_switch(self, session_id: str, cause: SwitchCause) -> None:
        self._session = session_id
        await self._ask("on_session_switch", session_id, cause=cause)

    async def on_pre_compress(self, messages: Sequence[Message]) -> str:
        return _safe(await self._ask("on_pre_compress", _text(messages)))

    async def on_memory_write(self, action: Action, target: Target, content: str) -> None:
        await self._ask("on_memory_write", action, target, content)

    async def on_delegation(self, task: str, result: str, child_session_id: str) -> None:
        await self._ask("on_delegation", task, result, child_session_id=child_session_id)

    async def forget(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Call `forget()` for all stored texts, then `forget(texts)` for those to remove."""
        if not self._service.has("forget"):
            return [f"{self.name} keeps its data; it has no method to forget."]
        stored = await self._ask("forget")
        texts = [text for text in stored or () if isinstance(text, str)]
        gone = [text for text in texts if remove_phrases(text) != text]
        if gone:
            await self._ask("forget", gone)
        return []

    def backup_paths(self) -> tuple[Path, ...]:
        """Return the paths registered at load time."""
        paths = self._service.offer.facts.get("backup_paths")
        return tuple(
            Path(each)
            for each in (paths if isinstance(paths, list) else ())
            if isinstance(each, str) and each
        )

    async def shutdown(self) -> None:
        await self._ask("shutdown")

    async def _ask(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        if not self._service.has(method):
            return None
        return await self._service.ask(
            method, *arguments, seconds=SECONDS, session_id=self._session, **keywords
        )


def _text(messages: Sequence[Message]) -> list[Any]:
    return PlainMessages(messages[-MAX_MESSAGES:]).dicts


def _safe(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        return ""
    if finding := scan_for_threats(text):
        log.warning("memory provider text dropped", extra={"finding": finding})
        return ""
    return text[:MAX_CHARS]
