"""Records the model calls of a session beside its journal, so that it can be played again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.home import TAPES
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.session_request import SessionRequest
from hermes.core.turn import TurnLimits
from hermes.models.limits import TieredConnect
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.player import InterceptedProvider
from hermes.providers.recorded.tape import TapeRecorder
from hermes.replay.facts import endpoint_facts, run_of

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.models.models import Models


class SessionRecorder:
    """For one session of one process, which comes in after so many records. A session that was
    there before gets its tape at once: it must be known when this process came."""

    def __init__(
        self,
        context: RunContext,
        models: Models,
        session_id: str,
        opening: SessionRequest,
        workspace: Workspace,
        after: int,
    ) -> None:
        self._models = models
        self._settings = context.settings
        self._mask = SecretMask(context.redactor.values(), context.redactor.marks)
        run = run_of(
            context.config,
            mask=self._mask,
            after=after,
            at=context.world.clock.now(),
            attended=opening.attended,
            root=workspace.root,
            cwd=workspace.cwd,
        )
        folder = context.home.sessions / session_id / TAPES
        self._tape = TapeRecorder(folder, run, mask=self._mask, clock=context.world.clock)
        if after:
            self._tape.open()

    def wrap(self, connect: TieredConnect) -> TieredConnect:
        def taped(
            model: str, provider: str, meter: Meter, tier: str | None
        ) -> tuple[Provider, TurnLimits]:
            connected, limits = connect(model, provider, meter, tier)
            way = endpoint_facts(self._models, self._settings, self._mask, model, provider, tier)
            self._tape.record_model(way)
            return InterceptedProvider(connected, self._tape), limits

        return taped
