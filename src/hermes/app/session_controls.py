"""User controls of an open session: effort, service tier, approval mode and model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast, get_args

from hermes.codec.values import JsonValue, replace
from hermes.config.schema import Effort
from hermes.config.settings import Settings
from hermes.core.commands import SwitchModel, Tune
from hermes.core.events import ControlsChanged
from hermes.core.prompt import Prompt
from hermes.core.session import Session
from hermes.core.session_deps import View
from hermes.core.transcript import Transcript
from hermes.policy.rules import SessionPolicy

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.config.run_context import RunContext


async def restore_model(app: App, session: Session, transcript: Transcript) -> None:
    """Keep the session's model unless another was requested or it is unreachable. A replay follows
    its recording."""
    if app.context.offline:
        return
    explicit = app.models.is_explicit()
    if not explicit and app.models.is_reachable(transcript.model, transcript.provider):
        return
    choice = await app.models.choose()
    app.announce_choice(choice)
    if (choice.model, choice.provider) == (transcript.model, transcript.provider):
        return
    if not explicit:
        before = f"{transcript.model} ({transcript.provider}) is not available now"
        if not transcript.model:
            before = "This session was imported without the name of its model"
        app.context.notices.append(f"{before}; using {choice.model}.")
    await session.send(SwitchModel(model=choice.model, provider=choice.provider))


ApprovalMode = Literal["manual", "smart", "off"]
MODES = get_args(ApprovalMode)
# The service tier of `/fast`.
FAST = "priority"

EFFORTS = tuple(each for each in get_args(Effort) if each)


class SessionControls:
    """What the user can change in an open session. Values come from the newest `ControlsChanged`
    event, or from the settings if there is none. `display` is how the session is shown; `policy`
    decides about its effects."""

    def __init__(self, settings: Settings, policy: SessionPolicy) -> None:
        self.display = settings.display
        self._default_effort = settings.agent.reasoning_effort
        self._default_tier = settings.agent.service_tier
        self._default_mode: ApprovalMode = policy.mode
        self.policy = policy
        self._tuned = ControlsChanged()

    @property
    def effort(self) -> str:
        """The reasoning effort."""
        return self._default_effort if self._tuned.effort is None else self._tuned.effort

    @property
    def tier(self) -> str:
        """The requested service tier."""
        return self._default_tier if self._tuned.tier is None else self._tuned.tier

    @property
    def chosen_tier(self) -> str | None:
        """The service tier that was chosen in this session; None for that of the settings."""
        return self._tuned.tier

    @property
    def mode(self) -> ApprovalMode:
        """The approval mode."""
        return self.policy.mode

    @property
    def careful_mode(self) -> ApprovalMode:
        """The mode to return to when approvals are turned on again."""
        return "manual" if self._default_mode == "off" else self._default_mode

    def change(self, **changes: str | None) -> Tune:
        """The command that changes only these values."""
        now = self._tuned
        return replace(Tune(effort=now.effort, tier=now.tier, mode=now.mode), **changes)

    def apply(self, tuned: ControlsChanged) -> None:
        self._tuned = tuned
        mode = self._default_mode if tuned.mode is None else tuned.mode
        self.policy.mode = cast(ApprovalMode, mode)

    def restore(self, tuned: ControlsChanged) -> None:
        """Restore the saved values except the approval mode, which was chosen for the earlier
        run."""
        self.apply(replace(tuned, mode=None))

    def wrap_view(self, view: View) -> View:
        """The view with the chosen effort."""

        def with_effort(transcript: Transcript) -> Prompt:
            prompt, effort = view(transcript), self._tuned.effort
            return prompt if effort is None else replace(prompt, effort=effort)

        return with_effort


def save_setting(run: RunContext, path: tuple[str, ...], value: JsonValue) -> None:
    """Save a value in the settings of the home, for new sessions too."""
    # Loaded on use: it needs the YAML library that keeps comments.
    from hermes.config.edit import write_settings

    write_settings(run.home, {path: value})
