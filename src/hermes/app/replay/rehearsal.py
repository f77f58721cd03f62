"""The app of a replay: the real one, with a record in place of the world around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hermes.app.build import App
from hermes.app.limits import limits_of
from hermes.app.prompt.compacting import BUILT_IN, means_of
from hermes.app.replay.facts import Facts, Known
from hermes.app.replay.tools import Mode, ReplayTools, Results
from hermes.codec.json import encode
from hermes.config.child_environment import child_environment
from hermes.config.home import Home
from hermes.config.load import Config, load
from hermes.core.effects import Effect
from hermes.core.errors import HermesError
from hermes.core.events import ApprovalAsked, DurableEvent, EffectDecided, SessionOpened
from hermes.core.parts import Parts
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.session_request import Opening
from hermes.core.tools import Tool
from hermes.core.turn import Limits
from hermes.core.world import World
from hermes.models.choice import EMBEDDED, OFFLINE, Wish
from hermes.models.resolver import Resolver
from hermes.providers.endpoint import Endpoint
from hermes.providers.recorded.player import Player
from hermes.providers.recorded.tapped import Tapped
from hermes.replay.approvals import AnsweredThen
from hermes.replay.compactions import PlayedEngine
from hermes.replay.conductor import Conductor
from hermes.replay.cues import side_calls
from hermes.replay.gates import Gates
from hermes.replay.hooks import played_hooks
from hermes.replay.journal import ReplayJournal
from hermes.replay.score import Score
from hermes.replay.scratch import ScratchWorkspace
from hermes.replay.spoken import Continuing, SpokenProvider
from hermes.replay.time import ReplayWorld
from hermes.replay.workspace import PlayedWorkspace
from hermes.workspaces.local import LocalWorkspace

WINDOW = 256_000
PREFILL = "prefill.json"


class Play:
    """What all processes of one replay share. `copy` is where live tools work, if they do."""

    def __init__(
        self,
        score: Score,
        results: Results,
        *,
        mode: Mode = "recorded",
        tools: Mapping[str, Tool] | None = None,
        then: Provider | None = None,
        env: Mapping[str, str] | None = None,
        copy: Path | None = None,
    ) -> None:
        self.score = score
        self.results = results
        self.mode: Mode = mode
        self.tools = tools or {}
        self.then = then
        self.env = env or {}
        self.copy = copy


class Rehearsal(App):
    """One process of the record. Without a `player` it has no tape: replies come from the events.
    `cwd` is where the shell was when it came in."""

    def __init__(
        self,
        config: Config,
        facts: Facts,
        play: Play,
        conductor: Conductor,
        gates: Gates,
        *,
        start: int,
        player: Player | None,
        known: Iterable[Known],
        cwd: str,
    ) -> None:
        others = side_calls(play.score.events)
        world = ReplayWorld(gates.clock, play.score.lines, start, others)
        super().__init__(config, env=facts.variables, world=world)
        self.journal = ReplayJournal(
            config.home.journal,
            world,
            score=play.score,
            clock=gates.clock,
            noted=conductor.noted,
        )
        self.tools = ReplayTools(
            gates, play.results, mode=play.mode, changed=play.tools, moved=self._moved
        )
        self.models.resolver = Remembering(self.models.resolver, config, known)
        self.new_recorder = conductor.recorder
        self.person, self.state = facts.home, facts.state
        self.run.offline = True
        self.judged_then = lambda: _by_judge(gates.due)
        self.without_tape = False
        self._facts = facts
        self._play = play
        self._gates = gates
        self._player = player
        self._cwd = cwd
        self._played: PlayedWorkspace | None = None

    def _parts(
        self,
        session_id: str,
        opened: SessionOpened,
        opening: Opening,
        workspace: Workspace,
        *,
        began: float,
        after: int = 0,
    ) -> Parts:
        parts = super()._parts(session_id, opened, opening, workspace, began=began, after=after)
        # The results of then have these words in them already.
        parts.remark = None
        parts.preflight = self._lasting
        parts.hooks = lambda _recorder: played_hooks(self._gates, self._play.score.events)
        if self._play.then is not None:
            parts.policy = AnsweredThen(parts.policy, self._play.score)
        built_in = self.settings.context.engine == BUILT_IN
        means = means_of(self, session_id, opened)
        parts.engine = PlayedEngine(means, self._gates, built_in=built_in)
        return parts

    async def _lasting(self, _effect: Effect) -> tuple[str, ...]:
        """What was said then about what could not be taken back."""
        due = self._gates.due
        return due.lasting if isinstance(due, ApprovalAsked) else ()

    def _root(self, opened: SessionOpened) -> str:
        return self._facts.root or opened.cwd

    def _workspace(self, session_id: str, root: str, opening: Opening) -> Workspace:
        if self._play.mode == "live" and self._play.copy is not None:
            return self._scratch(session_id, root, self._play.copy)
        self._played = PlayedWorkspace(
            root, home=self._facts.home, cwd=self._cwd or root, gates=self._gates
        )
        return self._played

    def _scratch(self, session_id: str, root: str, copy: Path) -> Workspace:
        terminal = self.settings.terminal
        inner = LocalWorkspace(
            str(copy),
            state=self.home.sessions / session_id,
            world=_RealTime(self.world),
            env=child_environment(self._play.env, terminal.env_passthrough),
        )
        return ScratchWorkspace(inner, root=root, copy=str(copy))

    def _moved(self, cwd: str) -> None:
        if self._played is not None:
            self._played.moved(cwd)

    def _connect(
        self, model: str, provider: str, meter: Meter, tier: str | None = None
    ) -> tuple[Provider, Limits]:
        connected, limits = self._inner(model, provider, meter, tier)
        if self._play.then is not None:
            connected = Continuing(connected, self._play.then, self._play.score, meter, self.world)
        return connected, limits

    def _inner(
        self, model: str, provider: str, meter: Meter, tier: str | None
    ) -> tuple[Provider, Limits]:
        spoken = SpokenProvider(self._play.score, self._gates, meter, self._speak)
        try:
            connected, limits = super()._connect(model, provider, meter, tier)
        except (HermesError, OSError):
            return spoken, limits_of(self.settings, WINDOW)
        if provider == OFFLINE:
            return connected, limits
        if self._player is None or provider == EMBEDDED:
            return spoken, limits
        return Tapped(connected, self._player), limits

    def _speak(self) -> None:
        self.without_tape = True


def _by_judge(due: DurableEvent | None) -> bool:
    return isinstance(due, EffectDecided) and due.by == "judge"


class Remembering(Resolver):
    """Knows where a wish for a model led then."""

    def __init__(self, inner: Resolver, config: Config, known: Iterable[Known]) -> None:
        super().__init__(config, inner.catalogue, inner._listings)
        self._known = {
            (each.provider, each.model, each.base_url, each.tier): each for each in known
        }

    def endpoint(self, wish: Wish) -> Endpoint:
        exact = self._known.get((wish.provider, wish.model, wish.base_url, wish.tier))
        found = exact or self._known.get((wish.provider, wish.model, "", wish.tier))
        return found.endpoint if found is not None else super().endpoint(wish)


class _RealTime(World):
    """Commands that really run take real time; their processes have the names of the record."""

    def __init__(self, names: World) -> None:
        super().__init__()
        self._names = names

    def new_id(self, prefix: str, digits: int = 12) -> str:
        return self._names.new_id(prefix, digits)


def config_of(facts: Facts, folder: Path) -> Config:
    """The settings of then, in a home of the replay's own. JSON is YAML."""
    home = Home(folder)
    home.folder(folder)
    # What models the user is neither told nor asked again.
    unasked = {**facts.settings.get("memory", {}), "provider": ""}
    settings = facts.settings | {"sessions": {"record": False}, "memory": unasked, "hooks": {}}
    if facts.prefill:
        (folder / PREFILL).write_text(facts.prefill, "utf-8")
        settings |= {"prefill_messages_file": PREFILL}
    home.config.write_bytes(encode(settings))
    return load(home, env=facts.variables)
