"""Stores when the curator last ran; read at every start of a chat."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.codec.whole_files import replace_file

STATE = ".curator_state"


class CuratorState(Value):
    last_run_at: float = 0
    paused: bool = False


def read_state(folder: Path) -> CuratorState:
    try:
        return decode(CuratorState, (folder / STATE).read_bytes())
    except (OSError, DecodeError):
        return CuratorState()


def write_state(folder: Path, state: CuratorState) -> None:
    replace_file(folder / STATE, encode(state))


def is_due(folder: Path, now: float, interval_hours: float) -> bool:
    """Returns whether a run is due. The first call only starts the interval."""
    state = read_state(folder)
    if state.paused or not folder.is_dir():
        return False
    if not state.last_run_at:
        write_state(folder, replace(state, last_run_at=now))
        return False
    return now - state.last_run_at >= interval_hours * 3600
