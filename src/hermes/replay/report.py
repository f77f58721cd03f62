"""What came of a replay: all as recorded, or the first place where it was not."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.core.events import Record

Where = Literal["event", "request", "missing", "extra", "turn"]


class Divergence(Value):
    """The first difference. `n` is the record, `kind` its kind; `field` the place in it where the
    two part, `recorded` and `now` what stands there, shortened. `where` tells apart an event that
    is another one, a request with other bytes, an event that never came, one that was never
    recorded, and one that belongs to another turn."""

    n: int
    kind: str
    where: Where
    field: str = ""
    recorded: str = ""
    now: str = ""


class Report(Value, omit_defaults=False):
    """`played` of `records` were the same, `requests` were compared byte for byte. `hashes` tells
    whether the journal that came out has the same chain of hashes. `restarts` are the records
    after which another process went on. `words` are what a person should know of how it was
    played. `request` is the first request that was another one, where that was allowed; `after` is
    what happened behind a divergence, if somebody was to go on from there."""

    session_id: str
    records: int
    played: int
    requests: int = 0
    hashes: Literal["same", "differ", "unknown"] = "unknown"
    restarts: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    divergence: Divergence | None = None
    request: Divergence | None = None
    after: tuple[Record, ...] = ()

    @property
    def identical(self) -> bool:
        return self.divergence is None
