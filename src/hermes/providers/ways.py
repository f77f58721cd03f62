"""Two retry variants of one provider: one gives up early for a fallback, one retries fully."""

from __future__ import annotations

from hermes.core.errors import Reason
from hermes.core.ports import Provider

# Attempts of the eager variant, where waiting is pointless if another model can answer.
EAGER_ATTEMPTS: dict[Reason, int] = {
    "rate_limit": 1,
    "upstream_rate_limit": 1,
    "billing": 1,
    "timeout": 2,
}


class RetryVariants:
    def __init__(self, eager: Provider, patient: Provider) -> None:
        self.eager = eager
        self.patient = patient
