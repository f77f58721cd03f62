"""What a person sets for one session while it goes on; new sessions begin with the settings."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import replace
from hermes.config.kinds import Effort
from hermes.config.settings import Settings
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import View
from hermes.policy.rules import Rules

ApprovalMode = Literal["manual", "smart", "off"]


class Tuning:
    """`display` is how the session is shown, `effort` how hard its model thinks."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self.display = settings.display
        self.effort: Effort = settings.agent.reasoning_effort
        self._usual_effort: Effort = self.effort
        self._usual_mode: ApprovalMode = rules.mode
        self._rules = rules

    @property
    def mode(self) -> ApprovalMode:
        """Who decides about risky effects from now on."""
        return self._rules.mode

    @mode.setter
    def mode(self, mode: ApprovalMode) -> None:
        self._rules.mode = mode

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
