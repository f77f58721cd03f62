"""What a session and its running turn work with. New behaviour is added here as a value, not in
the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct, field

from hermes.codec.values import Value
from hermes.core.caps import StepBudget
from hermes.core.concurrency import Stop
from hermes.core.delegating import NoWeb
from hermes.core.events import Compacted, CompactionCause, ControlsChanged
from hermes.core.gate import Approver, Gate, Preflight, Questions
from hermes.core.guardrails import Guardrails, LoopWatch, ResultLimiter
from hermes.core.hooks import TurnHooks
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.metering import Budgeting, SessionMeter
from hermes.core.ports import Fetcher, Journal, Meter, Middleware, Policy, Provider, Workspace
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.recorder import Recorder
from hermes.core.tools import Tool, ToolSettings
from hermes.core.transcript import Transcript
from hermes.core.world import World

View = Callable[[Transcript], Prompt]
# Text to add to the result of a call and its origin, "" for none.
Remark = Callable[[ToolCall, ToolResult], Awaitable[tuple[str, str]]]


class Toolbox(Protocol):
    """The tools of a session: their specifications, and each tool once it is used."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    def load(self, name: str) -> Tool | None: ...


class CompactionRequest(Value):
    """Why and how to compact a conversation."""

    # The context window of the model, in tokens.
    window: int
    cause: CompactionCause = "threshold"
    # What the summary focuses on.
    topic: str = ""
    # How many of the last exchanges stay unchanged; 0 leaves their number to the engine.
    keep: int = 0


class ContextEngine(Protocol):
    """Decides when to compact a conversation, and builds the compacted form. It depends only on its
    arguments, so that a session can be replayed. `prompt` is the request as it would be sent."""

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        """Whether to compact before this request is made."""
        ...

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        """Whether the request leaves space for a reply."""
        ...

    async def compact(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        """Return what the model sees from now on, or None when nothing would be gained. Its own
        model calls are booked with the meter."""
        ...

    def preview(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        """Estimate what `compact` returns, without a model call."""
        ...


class TurnLimits(Value):
    """The limits of a turn."""

    max_steps: int = 90
    tools_at_once: int = 8
    # For tools without a time limit of their own; 0 means none.
    tools_seconds: float = 660
    # The model's context window, in tokens.
    window: int = 256_000
    guardrails: Guardrails = Guardrails()
    settings: ToolSettings = ToolSettings()


T = TypeVar("T")
Factory = Callable[[], object]


class ServiceRegistry:
    """Creates services by class. Factories are registered under "module:Class", so that nothing is
    imported before a tool needs it; a class without a factory is called without arguments."""

    def __init__(self, factories: Callable[[], dict[str, Factory]] = dict) -> None:
        # Built for each lookup: an idle session must not keep a table of its own.
        self._factories = factories

    def replace(self, path: str, wrap: Callable[[object], object]) -> ServiceRegistry:
        """Return a registry in which `wrap` replaces the service of this path."""

        def build() -> dict[str, Factory]:
            factories = self._factories()
            inner = factories[path]
            return {**factories, path: lambda: wrap(inner())}

        return ServiceRegistry(build)

    def create(self, kind: type[T]) -> T:
        factory = self._factories().get(f"{kind.__module__}:{kind.__qualname__}")
        if factory is None:
            return kind()
        service = factory()
        if not isinstance(service, kind):
            raise TypeError(f"Expected {kind.__qualname__}, the factory created {type(service)}")
        return service

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._factories())


class ToolServices:
    """The services of tools while a session is open, one per type, created on first use. `services`
    creates those that need something from outside (a memory, an archive)."""

    def __init__(self, services: ServiceRegistry) -> None:
        self._objects: dict[type, object] = {}
        self._services = services

    def get(self, kind: type) -> object:
        if kind not in self._objects:
            self._objects[kind] = self._services.create(kind)
        return self._objects[kind]

    def on_compaction(self) -> None:
        """Earlier tool output may be out of the model's view: notify services that rely on it."""
        for service in self._objects.values():
            if callable(notify := getattr(service, ToolServices.on_compaction.__name__, None)):
                notify()


class TurnContext:
    """The state of the running turn, and everything that the loop uses to run it."""

    def __init__(
        self,
        deps: SessionDeps,
        recorder: Recorder,
        gate: Gate,
        questions: Questions,
        meter: SessionMeter,
        *,
        connection: tuple[Provider, TurnLimits],
        services: ToolServices,
        stop: Stop,
        hooks: TurnHooks | None,
    ) -> None:
        self.provider, self.limits = connection
        self.recorder = recorder
        self.gate = gate
        self.questions = questions
        self.meter = meter
        self.services = services
        self.stop = stop
        self.hooks = hooks
        self.view, self.toolbox = deps.view, deps.toolbox
        self.workspace, self.web = deps.workspace, deps.web
        self.world, self.engine, self.remark = deps.world, deps.engine, deps.remark
        self.budget = StepBudget(self.limits.max_steps, deps.budget)
        self.window = self.limits.window
        self.watch = LoopWatch(self.limits.guardrails, self._is_idempotent)
        self.result_limiter = ResultLimiter(deps.workspace, self.limits.window)
        self.usage = recorder.transcript.turn_usage
        self.fruitless = 0
        # The text of the reply in progress that was shown so far.
        self.shown_text: list[str] = []

    def _is_idempotent(self, name: str) -> bool:
        tool = self.toolbox.load(name)
        return tool is not None and tool.repeat == "safe"


# Builds the provider for a model and provider name, with the limits of that model. The meter books
# all its requests.
Connect = Callable[[str, str, Meter], tuple[Provider, TurnLimits]]


class SessionDeps(Struct, kw_only=True):
    """The dependencies of a session."""

    journal: Journal
    connect: Connect
    # Wraps the provider, outermost first.
    middleware: Sequence[Middleware | None] = ()
    view: View
    toolbox: Toolbox
    workspace: Workspace
    policy: Policy
    world: World
    attended: bool
    approval_seconds: float = 60
    budget: StepBudget | None = None
    # A steer that came too late for its turn becomes the next turn, unless this is set: then it is
    # withdrawn.
    withdraws_late_steers: bool = False
    # Returns what the session may spend now.
    budgeting: Callable[[], Budgeting] = Budgeting
    # Creates the services of `ToolContext.service`.
    services: ServiceRegistry = field(default_factory=ServiceRegistry)
    web: Fetcher = field(default_factory=NoWeb)
    approver: Approver | None = None
    preflight: Preflight | None = None
    engine: ContextEngine | None = None
    remark: Remark | None = None
    # Called before every turn until it returns hooks.
    hooks: Callable[[Recorder], TurnHooks | None] = lambda _recorder: None
    # Receives changed session controls.
    tune: Callable[[ControlsChanged], None] = lambda _tuned: None
