"""What a server may request during a call: sampling, images, questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import Message
from hermes.core.ports import Workspace
from hermes.core.prompt import ToolSpec
from hermes.core.tools import ToolContext
from hermes.mcp.server import McpServer


class SampleRequest(Value):
    """A request for a model reply. `hints` are the server's preferred models."""

    server: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 1024
    hints: tuple[str, ...] = ()


class Sample(Value):
    """The reply in the protocol's content blocks."""

    content: tuple[JsonObject, ...]
    model: str
    stop: str


Sampler = Callable[[McpServer, SampleRequest], Awaitable[Sample]]
KeepImage = Callable[[bytes, str], str]
# Wraps a call that may write local files; True if the tool claims that it only reads.
FileWatch = Callable[[Workspace, JsonObject, bool], AbstractAsyncContextManager[None]]


def _no_watch(_: Workspace, __: JsonObject, ___: bool) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class CallServices:
    """Services for one session. Without a sampler, sampling is refused. `keep_image` stores an
    image and returns its path; `watch` records that files may be written."""

    def __init__(
        self,
        sampler: Sampler | None = None,
        keep_image: KeepImage | None = None,
        watch: FileWatch = _no_watch,
    ) -> None:
        self.sampler = sampler
        self.keep_image = keep_image
        self.watch = watch


class ToolCaller:
    """One tool call, as the server may reach back to it."""

    def __init__(self, ctx: ToolContext, hosting: CallServices) -> None:
        self.hosting = hosting
        self._ctx = ctx

    @property
    def root(self) -> str:
        return self._ctx.workspace.root

    def progress(self, text: str) -> None:
        self._ctx.progress(text)

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        return await self._ctx.ask(question, choices)
