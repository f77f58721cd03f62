"""Resolves host names: by the system, or from given answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Protocol

from hermes.policy.urls.parsing import RefusedUrl, parse_host

LONGEST_SECONDS = 5.0
_LONGEST_CHAIN = 8


class HostResolver(Protocol):
    async def resolve(self, name: str) -> Sequence[str]:
        """All addresses of a host, in the order to try them. Raises OSError."""
        ...


class SystemResolver:
    def __init__(self, seconds: float = LONGEST_SECONDS) -> None:
        self._seconds = seconds

    async def resolve(self, name: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._seconds):
            found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class StaticResolver:
    """Answers by host. A list of lists gives one list per look-up; the last one repeats."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = {_name(host): _rounds(given) for host, given in answers.items()}
        self._asked: dict[str, int] = {}

    async def resolve(self, name: str) -> Sequence[str]:
        return self._resolve(name, _LONGEST_CHAIN)

    def _resolve(self, name: str, left: int) -> tuple[str, ...]:
        rounds = self._answers.get(name, [])
        if not rounds or not left:
            raise OSError(f"no answer for {name}")
        turn = self._asked.get(name, 0)
        self._asked[name] = turn + 1
        found: list[str] = []
        for answer in rounds[min(turn, len(rounds) - 1)]:
            alias = _name(answer)
            found += self._resolve(alias, left - 1) if alias in self._answers else (answer,)
        return tuple(found)


def _rounds(given: object) -> list[list[str]]:
    if isinstance(given, str):
        return [[given]]
    if not isinstance(given, list):
        return []
    if any(isinstance(each, list) for each in given):
        return [_texts(each if isinstance(each, list) else [each]) for each in given]
    return [_texts(given)]


def _texts(given: list[object]) -> list[str]:
    return [each for each in given if isinstance(each, str)]


def _name(text: str) -> str:
    try:
        return parse_host(text.strip()).name
    except RefusedUrl:
        return text.strip().lower().removesuffix(".")
