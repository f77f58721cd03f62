"""What a person can change in an open session: effort, tier, approvals, model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast, get_args

from hermes.codec.values import JsonValue, replace
from hermes.config.schema import Effort
from hermes.config.settings import Settings
from hermes.core.commands import SwitchModel, Tune
from hermes.core.events import Tuned
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Prompt
from hermes.core.session import Session
from hermes.core.transcript import Transcript
from hermes.core.turn import Connect, TurnLimits, View
from hermes.models.limits import TieredConnect
from hermes.policy.rules import Rules

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.config.run_context import RunContext


async def resume_model(app: App, session: Session, transcript: Transcript) -> None:
    """It keeps its model, unless another was asked for or it is out of reach. A replay is told by
    its record."""
    if app.run.offline:
        return
    wanted = app.models.is_explicit()
    if not wanted and app.models.is_reachable(transcript.model, transcript.provider):
        return
    choice = await app.models.choose()
    app.announce_choice(choice)
    if (choice.model, choice.provider) == (transcript.model, transcript.provider):
        return
    if not wanted:
        app.news.append(
            f"{transcript.model} ({transcript.provider}) is not available now; "
            f"{choice.model} goes on."
        )
    await session.send(SwitchModel(model=choice.model, provider=choice.provider))


ApprovalMode = Literal["manual", "smart", "off"]
MODES = get_args(ApprovalMode)
# The tier of `/fast`.
FAST = "priority"

EFFORTS = tuple(each for each in get_args(Effort) if each)


class SessionControls:
    """`display` is how the session is shown, `rules` decide about its effects; all else is as its
    newest `Tuned` says, and where that says nothing, as the settings do."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self.display = settings.display
        self._usual_effort = settings.agent.reasoning_effort
        self._usual_tier = settings.agent.service_tier
        self._usual_mode: ApprovalMode = rules.mode
        self.rules = rules
        self._tuned = Tuned()

    @property
    def effort(self) -> str:
        """How hard the model thinks."""
        return self._usual_effort if self._tuned.effort is None else self._tuned.effort

    @property
    def tier(self) -> str:
        """The service tier that is asked for."""
        return self._usual_tier if self._tuned.tier is None else self._tuned.tier

    @property
    def mode(self) -> ApprovalMode:
        """Who decides about risky effects from now on."""
        return self.rules.mode

    @property
    def careful_mode(self) -> ApprovalMode:
        """The one to return to when questions shall be asked again."""
        return "manual" if self._usual_mode == "off" else self._usual_mode

    def change(self, **changes: str | None) -> Tune:
        """What to send to the session so that only this changes."""
        now = self._tuned
        return replace(Tune(effort=now.effort, tier=now.tier, mode=now.mode), **changes)

    def apply(self, tuned: Tuned) -> None:
        """From now on it is so."""
        self._tuned = tuned
        mode = self._usual_mode if tuned.mode is None else tuned.mode
        self.rules.mode = cast(ApprovalMode, mode)

    def resume(self, tuned: Tuned) -> None:
        """As it was when the session was left, but for who decides: that was meant for those who
        were there."""
        self.apply(replace(tuned, mode=None))

    def wrap_view(self, view: View) -> View:
        """The same view with what is set here; untouched as long as that is nothing."""

        def tuned(transcript: Transcript) -> Prompt:
            prompt, effort = view(transcript), self._tuned.effort
            return prompt if effort is None else replace(prompt, effort=effort)

        return tuned

    def wrap_connect(self, connect: TieredConnect) -> Connect:
        """The same way to models, in the tier that is set here."""

        def tuned(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
            return connect(model, provider, meter, self._tuned.tier)

        return tuned


def save_setting(run: RunContext, path: tuple[str, ...], value: JsonValue) -> None:
    """For new sessions too: in the settings of the home."""
    # Few people do, and it takes the library that keeps their comments.
    from hermes.config.edit import write_settings

    write_settings(run.home, {path: value})
