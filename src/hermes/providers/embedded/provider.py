"""Runs any GGUF file as a provider, without a separate server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import World
from hermes.providers.completing import CompletingProvider
from hermes.providers.embedded.asking import NAME, EngineClient, GenerationSettings
from hermes.providers.embedded.engines import EnginePool
from hermes.providers.embedded.fitting import PromptFitter
from hermes.providers.embedded.speaking import ToolModeChooser
from hermes.providers.embedded.weights import describe_model_file
from hermes.providers.http import HttpClient

# A small model repeats itself and drifts with free sampling.
_SMALL_MANNER = GenerationSettings(
    max_tokens=512, sampling={"temperature": 0.2, "repeat_penalty": 1.1}
)
_MANNER = GenerationSettings(max_tokens=4_096)


class EmbeddedModel:
    """One per session; the model is loaded with the first reply. Sessions with the same `engines`
    share the process of a file; their owner closes them. Without `engines` the model owns its
    engine, ended by `close`. `reduced` (no tools) defaults to true for small models. `window`
    overrides the cautious default, up to the trained maximum."""

    def __init__(
        self,
        path: Path,
        *,
        http: HttpClient,
        world: World,
        threads: int | None = None,
        engines: EnginePool | None = None,
        reduced: bool | None = None,
        window: int | None = None,
    ) -> None:
        found = describe_model_file(path)
        most = found.trained or found.window
        self.weights = replace(found, window=min(window, most) if window else found.window)
        own = EnginePool()
        self._own = own if engines is None else None
        fitting = PromptFitter(self.window)
        asking = EngineClient(
            self.weights,
            http=http,
            world=world,
            engines=own if engines is None else engines,
            threads=threads,
            fitting=fitting,
            manner=_SMALL_MANNER if self.weights.small else _MANNER,
        )
        self._speaking = ToolModeChooser(
            asking, fitting, reduced=self.weights.small if reduced is None else reduced
        )
        self._completing = CompletingProvider(self._speaking, world)

    @property
    def window(self) -> int:
        """In tokens."""
        return self.weights.window

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._completing.reply(prompt)) as items:
            async for item in items:
                yield self._with_identity(item) if isinstance(item, Reply) else item

    async def close(self) -> None:
        if self._own is not None:
            await self._own.close()

    def _with_identity(self, reply: Reply) -> Reply:
        """Replaces the server's name of the file and sets the cost to zero."""
        usage = replace(reply.usage, cost=0.0)
        return replace(reply, model=str(self.weights.path), provider=NAME, usage=usage)
