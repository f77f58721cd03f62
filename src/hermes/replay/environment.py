"""The environment of a replay: recorded models, tools, files and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hermes.codec.json import encode
from hermes.config.child_environment import child_environment
from hermes.config.home import Home
from hermes.config.load import Config, load
from hermes.context.budget import EngineDeps
from hermes.context.engine import BUILT_IN
from hermes.core.effects import Effect
from hermes.core.errors import HermesError
from hermes.core.events import ApprovalAsked, EffectDecided, SessionOpened
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.session_deps import Connect, SessionDeps, TurnLimits
from hermes.core.tools import Tool
from hermes.core.world import World
from hermes.models.limits import limits_of
from hermes.models.model_ref import EMBEDDED, OFFLINE, ModelRef
from hermes.models.resolver import Resolver
from hermes.providers.endpoint import Endpoint
from hermes.providers.recorded.player import InterceptedProvider, TapePlayer
from hermes.replay.collection import KnownEndpoint, RunFacts
from hermes.replay.driver import Driver
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import side_calls
from hermes.replay.recorded_answers import (
    ContinuingProvider,
    RecordedApprovals,
    RecordedEngine,
    TranscriptProvider,
    recorded_hooks,
)
from hermes.replay.recorded_tools import Mode, RecordedResults, ReplayTools
from hermes.replay.recorded_workspace import RecordedWorkspace, ScratchWorkspace
from hermes.replay.replay_journal import ReplayJournal
from hermes.replay.sync_points import ReplayWorld, SyncPoints
from hermes.workspaces.local import LocalWorkspace

WINDOW = 256_000
PREFILL = "prefill.json"


class ReplayOverrides(NamedTuple):
    """Differences from the recording."""

    # Replacements by name.
    tools: Mapping[str, Tool] = {}
    # The system prompt. A changed one changes every request.
    system: str | None = None
    # Whether tools run live.
    mode: Mode = "recorded"
    # Use the recorded answers even if requests differ.
    requests_may_differ: bool = False
    # Continues the session after a divergence.
    continue_with: Provider | None = None


class ReplayPlan(NamedTuple):
    """What all processes of a replay share. Live tools work in the folder `copy`."""

    expected: ExpectedEvents
    results: RecordedResults
    overrides: ReplayOverrides
    env: Mapping[str, str]
    copy: Path | None


class ReplayEnvironment:
    """Replaces the environment of one recorded process. Without a `player` there is no tape and
    replies come from the events. `cwd` is the shell's working directory at the start."""

    def __init__(
        self,
        config: Config,
        facts: RunFacts,
        plan: ReplayPlan,
        driver: Driver,
        sync: SyncPoints,
        *,
        start: int,
        player: TapePlayer | None,
        known: Iterable[KnownEndpoint],
        cwd: str,
    ) -> None:
        others = side_calls(plan.expected.events)
        self.env = facts.variables
        self.world = ReplayWorld(sync.clock, plan.expected.lines, start, others)
        self.journal = ReplayJournal(
            config.home.journal,
            self.world,
            expected=plan.expected,
            clock=sync.clock,
            on_note=driver.on_noted,
        )
        self.tools = ReplayTools(
            sync,
            plan.results,
            mode=plan.overrides.mode,
            replacements=plan.overrides.tools,
            on_cwd_change=self._on_cwd_change,
        )
        self.recorder = driver.recorder
        self.user_home, self.state_dir = facts.home, facts.state
        self.without_tape = False
        self._config = config
        self._known = known
        self._facts = facts
        self._plan = plan
        self._sync = sync
        self._player = player
        self._cwd = cwd
        self._recorded_workspace: RecordedWorkspace | None = None

    def resolver(self, inner: Resolver) -> Resolver:
        return RecordedResolver(inner, self._config, self._known)

    def approved_by_model(self) -> bool:
        """Return whether a model approved the effect that is due."""
        due = self._sync.due
        return isinstance(due, EffectDecided) and due.by == "judge"

    def adapt(self, deps: SessionDeps, engine_deps: EngineDeps) -> SessionDeps:

        async def irreversible(_effect: Effect) -> tuple[str, ...]:
            """Return what the recorded approval request listed as irreversible."""
            due = self._sync.due
            return due.lasting if isinstance(due, ApprovalAsked) else ()

        deps.connect = partial(self._connect, deps.connect)
        # Recorded results contain these remarks already.
        deps.remark = None
        deps.preflight = irreversible
        deps.hooks = lambda _recorder: recorded_hooks(self._sync, self._plan.expected.events)
        if self._plan.overrides.continue_with is not None:
            deps.policy = RecordedApprovals(deps.policy, self._plan.expected)
        built_in = self._config.settings.context.engine == BUILT_IN
        deps.engine = RecordedEngine(engine_deps, self._sync, built_in=built_in)
        return deps

    def root(self, opened: SessionOpened) -> str:
        return self._facts.root or opened.cwd

    def workspace(self, session_id: str, root: str) -> Workspace:
        copy = self._plan.copy
        if self._plan.overrides.mode == "live" and copy is not None:
            passthrough = self._config.settings.terminal.env_passthrough
            inner = LocalWorkspace(
                str(copy),
                state=self._config.home.sessions / session_id,
                world=_RealTime(self.world),
                env=child_environment(self._plan.env, passthrough),
            )
            return ScratchWorkspace(inner, root=root, copy=str(copy))
        self._recorded_workspace = RecordedWorkspace(
            root, home=self._facts.home, cwd=self._cwd or root, sync=self._sync
        )
        return self._recorded_workspace

    def _on_cwd_change(self, cwd: str) -> None:
        if self._recorded_workspace is not None:
            self._recorded_workspace.cwd = cwd

    def _connect(
        self, inner: Connect, model: str, provider: str, meter: Meter
    ) -> tuple[Provider, TurnLimits]:
        """Connect to a model that replies as recorded."""
        connected, limits = self._connect_recorded(inner, model, provider, meter)
        if (continue_with := self._plan.overrides.continue_with) is not None:
            connected = ContinuingProvider(
                connected, continue_with, self._plan.expected, meter, self.world
            )
        return connected, limits

    def _connect_recorded(
        self, inner: Connect, model: str, provider: str, meter: Meter
    ) -> tuple[Provider, TurnLimits]:
        from_events = TranscriptProvider(
            self._plan.expected, self._sync, meter, self._note_missing_tape
        )
        try:
            connected, limits = inner(model, provider, meter)
        except (HermesError, OSError):
            return from_events, limits_of(self._config.settings, WINDOW)
        if provider == OFFLINE:
            return connected, limits
        if self._player is None or provider == EMBEDDED:
            return from_events, limits
        return InterceptedProvider(connected, self._player), limits

    def _note_missing_tape(self) -> None:
        self.without_tape = True


class RecordedResolver(Resolver):
    """Resolves models to the endpoints of the recording."""

    def __init__(self, inner: Resolver, config: Config, known: Iterable[KnownEndpoint]) -> None:
        super().__init__(config, inner.catalogue, inner._listings)
        self._known = {
            (endpoint.provider, endpoint.model, endpoint.base_url, endpoint.tier): endpoint
            for endpoint in known
        }

    def endpoint(self, ref: ModelRef) -> Endpoint:
        exact = self._known.get((ref.provider, ref.model, ref.base_url, ref.tier))
        found = exact or self._known.get((ref.provider, ref.model, "", ref.tier))
        return found.endpoint if found is not None else super().endpoint(ref)


class _RealTime(World):
    """Real time for live commands, with the recorded process ids."""

    def __init__(self, names: World) -> None:
        super().__init__()
        self._names = names

    def new_id(self, prefix: str, digits: int = 12) -> str:
        return self._names.new_id(prefix, digits)


def config_of(facts: RunFacts, folder: Path) -> Config:
    """Write the recorded settings into the replay's home. JSON is valid YAML."""
    home = Home(folder)
    home.ensure_folder(folder)
    # External memory providers are not called in a replay.
    unasked = {**facts.settings.get("memory", {}), "provider": ""}
    settings = facts.settings | {"sessions": {"record": False}, "memory": unasked, "hooks": {}}
    if facts.prefill:
        (folder / PREFILL).write_text(facts.prefill, "utf-8")
        settings |= {"prefill_messages_file": PREFILL}
    home.config.write_bytes(encode(settings))
    return load(home, env=facts.variables)
