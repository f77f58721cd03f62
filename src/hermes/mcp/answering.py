"""Answers requests from a server: sampling, elicitation and roots."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.world import World
from hermes.mcp.asking import ElicitationForm, fill_form
from hermes.mcp.faults import ServerFault
from hermes.mcp.hosting import ToolCaller
from hermes.mcp.sampling import request_of, result_of, tool_rounds
from hermes.mcp.server import McpServer

_MINUTE = 60.0
DECLINED: JsonObject = {"action": "decline"}
CANCELLED: JsonObject = {"action": "cancel"}


class ServerRequests:
    """For one server. A request belongs to the running call; a server that asks without a call,
    or during calls of several sessions, gets an error."""

    def __init__(self, server: McpServer, world: World, folder: str) -> None:
        self.server = server
        self._world = world
        self._folder = folder
        self._callers: list[ToolCaller] = []
        self._recent: deque[float] = deque()

    def begin(self, caller: ToolCaller) -> None:
        self._callers.append(caller)

    def end(self, caller: ToolCaller) -> None:
        self._callers.remove(caller)

    def roots(self) -> list[JsonObject]:
        folders = dict.fromkeys(caller.root for caller in self._callers) or {self._folder: None}
        return [{"uri": Path(each).as_uri(), "name": Path(each).name or each} for each in folders]

    async def sample(self, params: JsonObject) -> JsonObject:
        limits = self.server.sampling
        hosting = self._caller().hosting
        sampler = hosting.sampler
        if not limits.enabled or sampler is None:
            raise ServerFault("Sampling is disabled.")
        if tool_rounds(params) >= limits.max_tool_rounds:
            raise ServerFault(f"More than {limits.max_tool_rounds} tool rounds in a row.")
        self._count()
        request = request_of(self.server, params, hosting.keep_image)
        try:
            async with asyncio.timeout(limits.timeout):
                return result_of(await sampler(self.server, request))
        except TimeoutError:
            raise ServerFault(f"No answer within {limits.timeout:g} s.") from None

    async def elicit(self, params: JsonObject) -> JsonObject:
        """Shows forms to the person; requests to open a URL are declined."""
        if params.get("mode", "form") != "form" or "requestedSchema" not in params:
            return DECLINED
        form = ElicitationForm(self.server.name, params)
        caller = self._caller()
        try:
            async with asyncio.timeout(self.server.elicitation.timeout):
                return await fill_form(form, caller.ask)
        except TimeoutError:
            return CANCELLED

    def _caller(self) -> ToolCaller:
        hostings = {id(caller.hosting) for caller in self._callers}
        if not hostings:
            raise ServerFault("No call is running, so no one can be asked.")
        if len(hostings) > 1:
            raise ServerFault(
                "Calls of several sessions are running; the request cannot be assigned."
            )
        return self._callers[-1]

    def _count(self) -> None:
        now = self._world.clock.monotonic()
        while self._recent and now - self._recent[0] >= _MINUTE:
            self._recent.popleft()
        if len(self._recent) >= self.server.sampling.max_rpm:
            raise ServerFault(f"More than {self.server.sampling.max_rpm} requests in a minute.")
        self._recent.append(now)
