"""A witness sees the requests of every server in the process, for as long as it is there."""

from __future__ import annotations

import httpx2

from hermes.testing.observers import observe_requests
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

HI = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def ask(server: ScriptedServer, http: httpx2.AsyncClient) -> None:
    await http.post(f"{server.url}/v1/chat/completions", json=HI)
    await http.get(f"{server.url}/v1/models")


async def test_all_servers_are_witnessed_in_thread_or_not() -> None:
    seen: list[Request] = []
    with ScriptedServer.in_thread([says("x")], loop=True) as one:
        async with (
            ScriptedServer([says("x")]) as two,
            httpx2.AsyncClient(verify=False, timeout=60) as http,
        ):
            with observe_requests(seen.append):
                await ask(one, http)
                await ask(two, http)
            await ask(one, http)
    assert seen == [one.requests[0], one.probes[0], two.requests[0], two.probes[0]]
