"""The dependencies of a session, built by `app`."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.budget import StepBudget
from hermes.core.events import Tuned
from hermes.core.gate import Judge, Preflight
from hermes.core.gated import NoWeb
from hermes.core.hooks import TurnHooks
from hermes.core.meter import Budgeting
from hermes.core.ports import Fetcher, Journal, Meter, Policy, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.service_registry import ServiceRegistry
from hermes.core.turn import ContextEngine, Remark, Toolbox, TurnLimits, View
from hermes.core.world import World

Connect = Callable[[str, str, Meter], tuple[Provider, TurnLimits]]


class SessionDeps:
    """`connect` builds the provider for a model and provider name, with the limits of that model;
    the meter books all its requests. `budgeting` returns what the session may spend now. `services`
    creates the objects that tools get from `ToolContext.kept`. `judge` and `preflight`: see `Gate`.
    `engine` compacts long conversations; `remark` adds text to tool results. `hooks` is called
    before every turn until it returns hooks; `tune` receives changed session settings."""

    def __init__(
        self,
        *,
        journal: Journal,
        connect: Connect,
        view: View,
        toolbox: Toolbox,
        workspace: Workspace,
        policy: Policy,
        world: World,
        attended: bool,
        approval_seconds: float = 60,
        budget: StepBudget | None = None,
        budgeting: Callable[[], Budgeting] = Budgeting,
        services: ServiceRegistry | None = None,
        web: Fetcher | None = None,
        judge: Judge | None = None,
        preflight: Preflight | None = None,
        engine: ContextEngine | None = None,
        remark: Remark | None = None,
        hooks: Callable[[Recorder], TurnHooks | None] = lambda _recorder: None,
        tune: Callable[[Tuned], None] = lambda _tuned: None,
    ) -> None:
        self.journal = journal
        self.connect = connect
        self.view = view
        self.toolbox = toolbox
        self.workspace = workspace
        self.policy = policy
        self.world = world
        self.attended = attended
        self.approval_seconds = approval_seconds
        self.budget = budget
        self.budgeting = budgeting
        self.services = services or ServiceRegistry()
        self.web = web or NoWeb()
        self.judge = judge
        self.preflight = preflight
        self.engine = engine
        self.remark = remark
        self.hooks = hooks
        self.tune = tune
