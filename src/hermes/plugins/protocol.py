"""The interface of a running plugin and the checks of its requests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext

log = logging.getLogger(__name__)

MOST_CHARS = 100_000
MOST_TOKENS = 8_192
# Per run; more indicates a loop.
MOST_MESSAGES = 50
# Per call.
MOST_QUESTIONS = 100

Dispatch = Callable[[str, str, ToolContext, str, JsonObject], Awaitable[str]]
Inject = Callable[[str, str, str], Awaitable[bool]]
Complete = Callable[[str, str, str, str, int], Awaitable[str]]


class Denied(Exception):
    """Denies a request, with a reason for the plugin."""


class Grants(Value):
    """Grants of one plugin. `uses_tools` comes from its manifest."""

    network: bool = False
    llm: bool = False
    processes: bool = False
    paths: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    uses_tools: tuple[str, ...] = ()


class PluginCaller:
    """The session, and possibly tool call, that a plugin works for."""

    def __init__(self, session_id: str = "", ctx: ToolContext | None = None) -> None:
        self.session_id = session_id
        self.ctx = ctx
        self.questions = 0

    @property
    def facts(self) -> JsonObject:
        """The keyword arguments about a call."""
        return {"session_id": self.session_id, "call_id": self.ctx.call_id if self.ctx else ""}

    async def serve(self, method: str, params: JsonObject, grants: Grants) -> object:
        """Serve a request that only some calls offer; raise Denied."""
        raise Denied(f"Unknown method {method[:60]!r}.")


NO_CALLER = PluginCaller()


class PluginRequests:
    """Answers the requests of one plugin. The functions come from the application; what has none
    is denied."""

    def __init__(
        self,
        plugin: str,
        grants: Grants,
        *,
        dispatch: Dispatch | None = None,
        inject: Inject | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.plugin = plugin
        self.grants = grants
        self._messages = 0
        self._dispatch = dispatch
        self._inject = inject
        self._complete = complete

    async def answer(self, method: str, params: JsonObject, caller: PluginCaller | None) -> Any:
        """Answer a request of the plugin. `caller` belongs to the running call; raise Denied
        without one."""
        if caller is None:
            raise Denied("The plugin asked for something outside of a call; this was refused.")
        caller.questions += 1
        if caller.questions > MOST_QUESTIONS and caller is not NO_CALLER:
            raise Denied(f"A call may make at most {MOST_QUESTIONS} requests.")
        match method:
            case "dispatch_tool":
                return await self._use_tool(params, caller)
            case "inject_message":
                return await self._message(params, caller)
            case "llm.complete":
                return await self._ask_model(params, caller)
            case _:
                return await caller.serve(method, params, self.grants)

    async def _use_tool(self, params: JsonObject, caller: PluginCaller) -> str:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise Denied("A tool call needs a name and an arguments object.")
        if name not in self.grants.uses_tools:
            raise Denied(f"{name[:60]} is not in `uses_tools` of the manifest.")
        if caller.ctx is None:
            raise Denied("Tools can only be used during a tool call.")
        if self._dispatch is None:
            raise Denied("Tools are not available here.")
        session = caller.session_id
        return await self._dispatch(self.plugin, session, caller.ctx, name, arguments)

    async def _message(self, params: JsonObject, caller: PluginCaller) -> bool:
        content, session = params.get("content"), params.get("session_key")
        if not isinstance(content, str) or not content.strip() or len(content) > MOST_CHARS:
            raise Denied(f"A message is text of at most {MOST_CHARS} characters.")
        # Other sessions are not accessible.
        if session not in (None, "", caller.session_id) or not caller.session_id:
            return False
        self._messages += 1
        if self._messages > MOST_MESSAGES:
            raise Denied(f"A plugin may send at most {MOST_MESSAGES} messages per run.")
        injected = self._inject and await self._inject(self.plugin, caller.session_id, content)
        return bool(injected)

    async def _ask_model(self, params: JsonObject, caller: PluginCaller) -> str:
        if not self.grants.llm:
            raise Denied("The model needs the grant `llm`, which only the user can give.")
        if self._complete is None or not caller.session_id:
            raise Denied("The model is only available during a session.")
        prompt, system = str(params.get("prompt", "")), str(params.get("system", ""))
        if len(prompt) + len(system) > MOST_CHARS:
            raise Denied(f"At most {MOST_CHARS} characters can be sent to the model.")
        wanted = params.get("max_tokens")
        most = wanted if isinstance(wanted, int) and 0 < wanted <= MOST_TOKENS else MOST_TOKENS
        return await self._complete(self.plugin, caller.session_id, system, prompt, most)


CallKind = Literal["tool", "hook", "command", "cli", "image", "service", "ping"]


class PluginFault(ToolError):
    """A plugin call failed: crash, timeout or refusal. Shown to the model."""


class RunningPlugin(Protocol):
    """A plugin that starts on its first call."""

    @property
    def protection(self) -> str:
        """Describes the sandbox in a few words."""
        ...

    async def load(self) -> Any:
        """Return its registrations; raise PluginFault."""
        ...

    async def call(
        self, kind: CallKind, name: str, payload: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        """Return its answer as JSON; raise PluginFault. 0 seconds means no limit."""
        ...

    async def close(self) -> None:
        """Stop it; raise PluginFault when its own clean-up failed."""
        ...
