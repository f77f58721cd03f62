"""Faults that a fake platform can be told to have."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

FaultKind = Literal[
    "rate_limit", "server_error", "drop_before", "drop_after", "slow", "conflict", "login"
]


class Fault(Value):
    """What goes wrong with a call. `drop_before` closes the connection before the call has an
    effect, `drop_after` afterwards and without a response. `slow` answers after `seconds`."""

    kind: FaultKind
    # For `rate_limit`: the delay that the response asks for.
    retry_after: float = 1.0
    seconds: float = 0.0
    # For `server_error`: whether the call had its effect.
    has_effect: bool = False
    status: int = 502
