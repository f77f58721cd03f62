"""Stores the mode of each session across editor restarts."""

from __future__ import annotations

import asyncio

from hermes.codec.json import DecodeError, decode, encode
from hermes.config.files import config_lock, replace_file
from hermes.config.home import Home
from hermes.core.errors import HermesError
from hermes.surfaces.acp.manners import DEFAULT_MODE, MODE_NAMES

MODES_FILE = "acp_modes.json"
# Sessions beyond this many start in the default mode again.
MAX_SESSIONS = 500


async def load_mode(home: Home, session_id: str) -> str:
    held = await asyncio.to_thread(_read, home)
    mode = held.get(session_id, DEFAULT_MODE)
    return mode if mode in MODE_NAMES else DEFAULT_MODE


async def save_mode(home: Home, session_id: str, mode: str) -> None:
    """Best effort: with a read-only home, the next editor starts in the default mode."""
    try:
        await asyncio.to_thread(_write, home, session_id, mode)
    except HermesError:
        return


def _read(home: Home) -> dict[str, str]:
    try:
        return decode(dict[str, str], (home.root / MODES_FILE).read_bytes())
    except (OSError, DecodeError):
        return {}


def _write(home: Home, session_id: str, mode: str) -> None:
    with config_lock(home):
        held = _read(home)
        held.pop(session_id, None)
        if mode != DEFAULT_MODE:
            held[session_id] = mode
        newest = dict(list(held.items())[-MAX_SESSIONS:])
        replace_file(home, home.root / MODES_FILE, encode(newest), durable=False)
