"""Tools are typed functions: the signature is the schema, the docstring the description."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypedDict, TypeVar

from hermes.codec.signature import Parameters
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Effect
from hermes.core.events import RepeatRule
from hermes.core.messages import Failure, Image, Text, ToolResult
from hermes.core.ports import Fetcher, Workspace
from hermes.core.prompt import ToolSpec

if TYPE_CHECKING:
    from typing import Unpack

P = ParamSpec("P")
ServiceT = TypeVar("ServiceT")
_FIELD = re.compile(r"\{(\w+)\}")
ToolKind = Literal["read", "edit", "search", "execute", "fetch", "think", "other"]


class ToolSettings(Value):
    """Sizes and time limits that users can set."""

    max_bytes: int = 50_000
    max_lines: int = 2_000
    max_line_length: int = 2_000
    file_read_max_chars: int = 100_000
    terminal_timeout: float = 180
    terminal_max_timeout: float = 600
    clarify_timeout: float = 120


class ToolOutput(Value):
    """The result of a tool."""

    # For the model.
    parts: tuple[Text | Image, ...]
    # For displays and the tool's later calls.
    details: JsonObject = {}
    failed: bool = False
    origin: str = "workspace"
    failure: Failure | None = None

    @staticmethod
    def text(text: str, *, details: JsonObject | None = None, failed: bool = False) -> ToolOutput:
        return ToolOutput(parts=(Text(text=text),), details=details or {}, failed=failed)


class ToolContext(Protocol):
    """What a tool can access. Every effect passes the gate."""

    @property
    def workspace(self) -> Workspace: ...

    @property
    def web(self) -> Fetcher: ...

    @property
    def settings(self) -> ToolSettings: ...

    @property
    def call_id(self) -> str: ...

    @property
    def stop(self) -> asyncio.Event:
        """Set when the person stops the turn; the tool should return what it has."""
        ...

    def progress(self, text: str, details: JsonObject | None = None) -> None:
        """Show a text now, without storing it. `details` have the form of the tool's own."""
        ...

    def latest(self, tool: str) -> JsonObject | None:
        """Return the details of that tool's newest result in this session."""
        ...

    def service(self, kind: type[ServiceT]) -> ServiceT:
        """Return the session's object of this type; it lives as long as the session is open."""
        ...

    async def call_tool(
        self, tool: str | Tool, arguments: JsonObject, *, key: str, origin: str = ""
    ) -> ToolResult:
        """Call another tool, in every respect as if the model had called it, and return its result.
        A Tool is a private one of the running tool. `key` must be unique among the inner calls
        of this call: after a crash, an inner call that has a result is not made again, and one that
        may have run and must not run twice has the result "outcome unknown". `origin` is the source
        of the arguments if it is not the model."""
        ...

    def known_result(self, key: str) -> ToolResult | None:
        """Return the result that the inner call of this key has already, from before a crash."""
        ...

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        """Ask the person. Return the answer, or None when the session is unattended or no answer
        came in time."""
        ...


class PathContext(Protocol):
    """What a tool needs to name its effects before it runs."""

    def resolve(self, path: str) -> str: ...

    @property
    def cwd(self) -> str: ...


Effects = Callable[[PathContext, JsonObject], Iterable[Effect]]


class ToolDisplay(Value):
    """How screens show a call. `detail` and `title` are templates over the arguments, such as
    "{path}"; without a detail, screens show the first argument that is a string."""

    icon: str = "⚡"
    verb: str = ""
    detail: str = ""
    title: str = ""

    @staticmethod
    def fill(template: str, arguments: JsonObject) -> str:
        """Put arguments into a template; missing ones leave nothing."""
        return _FIELD.sub(lambda field: str(arguments.get(field[1], "")), template)


def no_effects(_paths: PathContext, _arguments: JsonObject) -> Iterable[Effect]:
    return ()


class ToolOptions(TypedDict, total=False):
    """The options of a tool."""

    # States beforehand what a call will do.
    effects: Effects
    # "safe" lets a call run again after a crash.
    repeat: RepeatRule
    # The tool waits for a person and runs alone.
    interactive: bool
    # The tool limits its own run time, so that `TurnLimits.tools_seconds` does not apply.
    timed: bool
    # The tool keeps state that the gate does not see, such as its newest result, and runs alone.
    stateful: bool
    # The group that offers the tool.
    toolset: str
    kind: ToolKind
    display: ToolDisplay | None
    # The tool is offered only while its provider works.
    conditional: bool
    # Tools that only this tool can call.
    private: tuple[Tool, ...]


class Tool:
    """A function that the model can call, with its options."""

    # A replayed tool repeats its effects at their recorded positions, so it waits for no call.
    orders_effects = False
    # The origin of its output includes the sources of its inner calls.
    names_inner_sources = False
    stateful = False
    private: Mapping[str, Tool] = {}
    timed = False

    def __init__(
        self, run: Callable[..., Awaitable[ToolOutput]], **options: Unpack[ToolOptions]
    ) -> None:
        self.name = run.__name__
        self.description = inspect.cleandoc(run.__doc__ or "")
        self.parameters = Parameters(run)
        self.effects = options.get("effects", no_effects)
        self.repeat: RepeatRule = options.get("repeat", "never")
        self.interactive = options.get("interactive", False)
        self.timed = options.get("timed", False)
        self.stateful = options.get("stateful", False)
        self.toolset = options.get("toolset", "")
        self.kind: ToolKind = options.get("kind", "other")
        self.display = options.get("display")
        self.conditional = options.get("conditional", False)
        self.private = {each.name: each for each in options.get("private", ())}
        self._run = run

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name, description=self.description, parameters=self.parameters.schema()
        )

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        """Run with decoded arguments (see `parameters.decode`)."""
        return await self._run(ctx, **arguments)


def tool(
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[Concatenate[Any, P], Awaitable[ToolOutput]]], Tool]:
    """Make a Tool of an async function `(ctx, …) -> ToolOutput`. This is the only declaration of a
    tool: `scripts/generate_schemas.py` collects the built-in ones."""
    return lambda run: Tool(run, **options)
