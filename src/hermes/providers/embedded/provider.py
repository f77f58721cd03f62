"""Runs any GGUF file as a provider, without a separate server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.messages import Text, ToolMessage, Usage
from hermes.core.prompt import Delta, Notice, Prompt, Reply, TextDelta
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.completion import CompletingProvider
from hermes.providers.embedded.constrained_calls import (
    ConstrainedTools,
    describe_tools,
    without_tools,
)
from hermes.providers.embedded.engine_client import (
    NAME,
    SYSTEM_SHARE,
    EngineClient,
    GenerationSettings,
    PromptFitter,
)
from hermes.providers.embedded.engines import EnginePool
from hermes.providers.embedded.model_file import describe_model_file

# The rest of the instruction share is for the system text.
_TOOLS_SHARE = 0.5
_ELLIPSIS = " …"
NO_ANSWER = "(no answer)"
# The same model gets the same prompt, so waiting between attempts changes nothing.
_TRIES = 2


class ToolModeChooser:
    """Chooses how tools are offered to a local model. `reduced` is for small models: no tools, and
    a reply that reaches its limit ends there, because more would be repetition."""

    def __init__(self, client: EngineClient, fitter: PromptFitter, *, reduced: bool) -> None:
        self._client = client
        self._fitter = fitter
        self._reduced = reduced
        self._constrained = ConstrainedTools(client.reply)
        self._reported_no_tools = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if not (self._reported_no_tools or self._reduced or self._tools_fit(prompt)):
            # Reported once, because the user may expect tools.
            self._reported_no_tools = True
            window = self._fitter.window
            text = (
                f"The model's window ({window} tokens) is too small for the tools; it answers"
                " without them."
            )
            yield Notice(text=text, kind="warn")
        spent = Usage()
        for left in reversed(range(_TRIES)):
            async with aclosing(self._answer(prompt)) as items:
                async for item in items:
                    if not isinstance(item, Reply):
                        yield item
                        continue
                    spent += item.usage
                    if not _is_empty(item, prompt):
                        yield replace(item, usage=spent)
                        return
                    if not left:
                        yield TextDelta(text=NO_ANSWER)
                        yield replace(_append_text(item, NO_ANSWER), usage=spent)

    def _answer(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if self._reduced or not prompt.tools or not self._tools_fit(prompt):
            return self._reply_without_tools(prompt)
        # The system text is shortened so that the tools fit after it.
        tools = self._fitter.tokens(describe_tools(prompt.tools))
        available = int(self._fitter.budget * SYSTEM_SHARE) - tools
        system = self._fitter.clip(prompt.system, available)
        return self._constrained.reply(replace(prompt, system=system))

    async def _reply_without_tools(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._client.reply(without_tools(prompt))) as items:
            async for item in items:
                if self._reduced and isinstance(item, Reply) and item.message.stop == "length":
                    yield TextDelta(text=_ELLIPSIS)
                    yield _append_text(item, _ELLIPSIS)
                else:
                    yield item

    def _tools_fit(self, prompt: Prompt) -> bool:
        if not prompt.tools:
            return True
        tools = self._fitter.tokens(describe_tools(prompt.tools))
        return tools <= self._fitter.budget * _TOOLS_SHARE


def _append_text(reply: Reply, text: str) -> Reply:
    """Return the reply with this text at its end, marked as complete."""
    parts = (*reply.message.parts, Text(text=text))
    return replace(reply, message=replace(reply.message, parts=parts, stop="done"))


def _is_empty(reply: Reply, prompt: Prompt) -> bool:
    """Return whether a reply is empty. An empty reply after tool results is not final: the model
    continues when reminded of its task."""
    message = reply.message
    after_results = bool(prompt.messages) and isinstance(prompt.messages[-1], ToolMessage)
    silent = not message.text.strip() and not message.calls and message.stop == "done"
    return silent and not after_results


# A small model repeats itself and drifts with free sampling.
_SMALL_GENERATION = GenerationSettings(
    max_tokens=512, sampling={"temperature": 0.2, "repeat_penalty": 1.1}
)
_GENERATION = GenerationSettings(max_tokens=4_096)


class EmbeddedModel:
    """Provider of a local model file for one session. The first reply loads the model. Sessions
    with the same `engines` share the process of a file; their owner closes them. `reduced` (no
    tools) defaults to true for small models. `window` overrides the cautious default, up to the
    trained maximum."""

    def __init__(
        self,
        path: Path,
        *,
        http: HttpClient,
        world: World,
        engines: EnginePool,
        threads: int | None = None,
        reduced: bool | None = None,
        window: int | None = None,
    ) -> None:
        weights = describe_model_file(path)
        most = weights.trained or weights.window
        self.weights = replace(weights, window=min(window, most) if window else weights.window)
        fitter = PromptFitter(self.window)
        client = EngineClient(
            self.weights,
            http=http,
            world=world,
            engines=engines,
            threads=threads,
            fitter=fitter,
            generation=_SMALL_GENERATION if self.weights.small else _GENERATION,
        )
        reduced = self.weights.small if reduced is None else reduced
        chooser = ToolModeChooser(client, fitter, reduced=reduced)
        self._inner = CompletingProvider(chooser, world)

    @property
    def window(self) -> int:
        """In tokens."""
        return self.weights.window

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._inner.reply(prompt)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    # The path replaces the server's name of the file, and nothing is charged.
                    usage = replace(item.usage, cost=0.0)
                    model = str(self.weights.path)
                    item = replace(item, model=model, provider=NAME, usage=usage)
                yield item
