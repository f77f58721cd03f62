"""Describes how a command is confined, as text for people and as a value for code."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Kind = Literal["none", "bubblewrap", "landlock", "container", "machine", "cloud"]


class ConfinementReport(Value):
    """`details` say what is enforced, `gaps` what is not. `none` means that commands have all
    rights of the user who started Hermes; its gaps say why."""

    kind: Kind
    details: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def confined(self) -> bool:
        return self.kind != "none"
