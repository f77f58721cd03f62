"""What a person sets for one session while it goes on; new sessions begin with the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from hermes.codec.values import JsonValue, replace
from hermes.config.kinds import Effort
from hermes.config.settings import Settings
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import View
from hermes.policy.rules import Rules

if TYPE_CHECKING:
    from hermes.app.build import App

ApprovalMode = Literal["manual", "smart", "off"]
MODES = get_args(ApprovalMode)
EFFORTS = tuple(each for each in get_args(Effort) if each)


class Tuning:
    """`display` is how the session is shown, `effort` how hard its model thinks, `rules` are what
    decides about its effects."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self.display = settings.display
        self.effort: Effort = settings.agent.reasoning_effort
        self._usual_effort: Effort = self.effort
        self._usual_mode: ApprovalMode = rules.mode
        self.rules = rules

    @property
    def mode(self) -> ApprovalMode:
        """Who decides about risky effects from now on."""
        return self.rules.mode

    @mode.setter
    def mode(self, mode: ApprovalMode) -> None:
        self.rules.mode = mode

    @property
    def careful_mode(self) -> ApprovalMode:
        """The one to return to when questions shall be asked again."""
        return "manual" if self._usual_mode == "off" else self._usual_mode

    def applied(self, view: View) -> View:
        """The same view with what is set here; untouched as long as that is the usual."""

        def tuned(transcript: Transcript) -> Prompt:
            prompt = view(transcript)
            if self.effort == self._usual_effort:
                return prompt
            return replace(prompt, effort=self.effort)

        return tuned


def keep_setting(app: App, path: tuple[str, ...], value: JsonValue) -> None:
    """For new sessions too: in the settings of the home."""
    # Few people do, and it takes the library that keeps their comments.
    from hermes.config.edit import write_settings

    write_settings(app.home, {path: value})
