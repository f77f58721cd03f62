"""A crowd of clients is served with the default settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.surfaces.api.serving import Serving, serving

CLIENTS = 256


def test_256_clients_at_once_are_all_answered(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        return says(f"You said: {request.last_text}")

    with (
        ScriptedServer.in_thread(rule, strict=False, keep=1) as model,
        serving(tmp_path, model.url) as server,
    ):
        answers = asyncio.run(_ask_all(server))
    assert answers == [(200, f"You said: {n}") for n in range(CLIENTS)]


async def _ask_all(server: Serving) -> list[tuple[int, str]]:
    async def ask(client: httpx2.AsyncClient, n: int) -> tuple[int, str]:
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": str(n)}]}
        done = await client.post("/v1/chat/completions", json=body)
        if done.status_code != 200:
            return done.status_code, done.text
        return 200, done.json()["choices"][0]["message"]["content"]

    limits = httpx2.Limits(max_connections=None)
    async with server.async_client(limits=limits, timeout=120) as client:
        return await asyncio.gather(*(ask(client, n) for n in range(CLIENTS)))
