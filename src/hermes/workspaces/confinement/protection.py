"""What stands between a command and the machine, in words for a person and as a value for code."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Kind = Literal["none", "bubblewrap", "landlock", "container", "machine", "cloud"]


class Protection(Value):
    """`details` say what holds, `gaps` what does not. `none` means that commands can do whatever
    the person who started Hermes can; its gaps say why."""

    kind: Kind
    details: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def confined(self) -> bool:
        return self.kind != "none"
