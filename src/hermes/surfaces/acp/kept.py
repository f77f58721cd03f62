"""Stores the mode of each session across editor restarts."""

from __future__ import annotations

import asyncio

from hermes.codec.json import DecodeError, decode, encode
from hermes.config.files import replace_file, sole_writer
from hermes.config.home import Home
from hermes.core.errors import HermesError
from hermes.surfaces.acp.manners import DEFAULT, NAMES

FILE = "acp_modes.json"
# Sessions beyond this many start in the default mode again.
MOST = 500


async def mode_of(home: Home, session_id: str) -> str:
    held = await asyncio.to_thread(_read, home)
    mode = held.get(session_id, DEFAULT)
    return mode if mode in NAMES else DEFAULT


async def keep_mode(home: Home, session_id: str, mode: str) -> None:
    """Best effort: with a read-only home, the next editor starts in the default mode."""
    try:
        await asyncio.to_thread(_write, home, session_id, mode)
    except HermesError:
        return


def _read(home: Home) -> dict[str, str]:
    try:
        return decode(dict[str, str], (home.root / FILE).read_bytes())
    except (OSError, DecodeError):
        return {}


def _write(home: Home, session_id: str, mode: str) -> None:
    with sole_writer(home):
        held = _read(home)
        held.pop(session_id, None)
        if mode != DEFAULT:
            held[session_id] = mode
        newest = dict(list(held.items())[-MOST:])
        replace_file(home, home.root / FILE, encode(newest), durable=False)
