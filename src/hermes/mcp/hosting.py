"""What a server may ask back while one of its tools runs for a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import Message
from hermes.core.ports import Workspace
from hermes.core.prompt import ToolSpec
from hermes.core.tools import ToolContext
from hermes.mcp.server import Server


class SampleRequest(Value):
    """A wish for an answer of our model. `hints` are names of models the server would like."""

    server: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 1024
    hints: tuple[str, ...] = ()


class Sample(Value):
    """The answer: text and calls as the protocol writes them."""

    content: tuple[JsonObject, ...]
    model: str
    stop: str


Sampler = Callable[[Server, SampleRequest], Awaitable[Sample]]
KeepImage = Callable[[bytes, str], str]
# Around a call with these arguments that may write files of this machine; True if it says that it
# does not.
Watch = Callable[[Workspace, JsonObject, bool], AbstractAsyncContextManager[None]]


def _unwatched(_: Workspace, __: JsonObject, ___: bool) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class Hosting:
    """The means of one session; the program gives it those that need other rooms. Without a
    sampler no server is answered by a model. `keep_image` stores a picture and says where; `watch`
    notes that files may be written."""

    def __init__(
        self,
        sampler: Sampler | None = None,
        keep_image: KeepImage | None = None,
        watch: Watch = _unwatched,
    ) -> None:
        self.sampler = sampler
        self.keep_image = keep_image
        self.watch = watch


class Caller:
    """One call of a tool, as the server that runs it may reach back to it."""

    def __init__(self, ctx: ToolContext, hosting: Hosting) -> None:
        self.hosting = hosting
        self._ctx = ctx

    @property
    def root(self) -> str:
        return self._ctx.workspace.root

    def progress(self, text: str) -> None:
        self._ctx.progress(text)

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        return await self._ctx.ask(question, choices)
