"""Reads tapes: one run per file, with complete requests."""

from __future__ import annotations

import logging
from pathlib import Path

from hermes.codec.values import Value, replace
from hermes.providers.recorded.frames import RecordedExchange, TapeModel, TapeRun, decode_frames
from hermes.providers.recorded.sharing import restore_body
from hermes.providers.recorded.tape import SUFFIX, digest

log = logging.getLogger(__name__)


class TapedRun(Value):
    """What one process did for a session. The requests of `exchanges` are complete."""

    run: TapeRun
    ways: tuple[TapeModel, ...] = ()
    exchanges: tuple[RecordedExchange, ...] = ()


def read_tapes(folder: Path) -> tuple[TapedRun, ...]:
    """The tapes of a session in order; empty if it was never recorded."""
    found = (read_tape(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return tuple(taped for taped in found if taped is not None)


def read_tape(path: Path) -> TapedRun | None:
    """None for a file without a readable start."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    run: TapeRun | None = None
    ways: list[TapeModel] = []
    exchanges: list[RecordedExchange] = []
    before = seal = b""
    for frame in decode_frames(data):
        match frame:
            case TapeRun():
                run = frame
            case TapeModel():
                ways.append(frame)
            case RecordedExchange():
                before = restore_body(before, frame.head, frame.tail, frame.body)
                seal = digest(seal, frame.head, frame.tail, frame.body)
                if seal != frame.digest:
                    log.warning("a tape is damaged", extra={"file": str(path)})
                    break
                exchanges.append(replace(frame, body=before, head=0, tail=0))
    if run is None:
        return None
    return TapedRun(run=run, ways=tuple(ways), exchanges=tuple(exchanges))
