"""Reads tapes: one run per file, with complete requests."""

from __future__ import annotations

import logging
from pathlib import Path

from hermes.codec.values import Value, replace
from hermes.providers.recorded.frames import Exchange, Run, Way, unpack
from hermes.providers.recorded.sharing import restored
from hermes.providers.recorded.tape import SUFFIX, digest

log = logging.getLogger(__name__)


class Taped(Value):
    """What one process did for a session. The requests of `exchanges` are complete."""

    run: Run
    ways: tuple[Way, ...] = ()
    exchanges: tuple[Exchange, ...] = ()


def read_tapes(folder: Path) -> tuple[Taped, ...]:
    """The tapes of a session in order; empty if it was never recorded."""
    found = (read_tape(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return tuple(taped for taped in found if taped is not None)


def read_tape(path: Path) -> Taped | None:
    """None for a file without a readable start."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    run: Run | None = None
    ways: list[Way] = []
    exchanges: list[Exchange] = []
    before = seal = b""
    for frame in unpack(data):
        match frame:
            case Run():
                run = frame
            case Way():
                ways.append(frame)
            case Exchange():
                before = restored(before, frame.head, frame.tail, frame.body)
                seal = digest(seal, frame.head, frame.tail, frame.body)
                if seal != frame.digest:
                    log.warning("a tape is damaged", extra={"file": str(path)})
                    break
                exchanges.append(replace(frame, body=before, head=0, tail=0))
    if run is None:
        return None
    return Taped(run=run, ways=tuple(ways), exchanges=tuple(exchanges))
