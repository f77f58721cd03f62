"""Tools of plugins as Hermes tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from hermes.codec.json import encode
from hermes.codec.signature import GivenParameters
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.effects import CallServer, Effect
from hermes.core.messages import Text
from hermes.core.prompt import ToolSpec
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput
from hermes.plugins.running import PluginFault, RunningPlugin
from hermes.plugins.serving import PluginCaller
from hermes.plugins.surface import MOST_CHARS, ToolOffer

PREFIX = "plugin:"
# Marks plugins that may pass on their input.
OPEN = " (open)"


class SessionId:
    """The session that a tool runs in, set by the application."""

    def __init__(self, id: str = "") -> None:
        self.id = id


class PluginTool(Tool):
    """Output is untrusted unless the plugin is bundled. A `sealed` plugin cannot pass its input
    on."""

    def __init__(
        self,
        plugin: str,
        offer: ToolOffer,
        running: Callable[[], Awaitable[RunningPlugin]],
        *,
        seconds: float,
        trusted: bool = False,
        sealed: bool = False,
    ) -> None:
        self.name = offer.name
        self.description = offer.description
        self.parameters = GivenParameters(offer.parameters)
        self.effects = self._effects
        self.repeat = "never"
        self.interactive = False
        self._origin = "workspace" if trusted else PREFIX + plugin
        self._server = PREFIX + plugin + ("" if sealed else OPEN)
        self._offer = offer
        self._running = running
        self._seconds = seconds

    @property
    def spec(self) -> ToolSpec:
        words = self._offer.description[:MOST_CHARS]
        if self._offer.finding:
            words = f"[unverified: {self._offer.finding}] {words}"
        return ToolSpec(name=self.name, description=words, parameters=self._offer.parameters)

    def _effects(self, _place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
        yield CallServer(server=self._server, tool=self.name, arguments=encode(arguments).decode())

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        caller = PluginCaller(ctx.kept(SessionId).id, ctx)
        try:
            running = await self._running()
            result = await running.call(
                "tool", self.name, arguments, seconds=self._seconds, caller=caller
            )
        except PluginFault as fault:
            text = encode({"error": str(fault)}).decode()
            return ToolOutput(parts=(Text(text=text),), failed=True, origin=self._origin)
        return ToolOutput(parts=(Text(text=_words(result)),), origin=self._origin)


def _words(result: JsonValue) -> str:
    return result if isinstance(result, str) else encode(result).decode()
