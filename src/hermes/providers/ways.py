"""Two ways to ask one model: one that leaves it to others soon, and one that does all it can."""

from __future__ import annotations

from hermes.core.errors import Reason
from hermes.core.ports import Provider

# How often the eager way asks, where waiting is of no use when somebody else can answer.
EAGER: dict[Reason, int] = {"rate_limit": 1, "upstream_rate_limit": 1, "billing": 1, "timeout": 2}


class Way:
    def __init__(self, eager: Provider, patient: Provider) -> None:
        self.eager = eager
        self.patient = patient
