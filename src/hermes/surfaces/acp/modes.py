"""The session modes of an editor: the policy that applies them and their storage."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from acp.schema import SessionMode, SessionModeState

from hermes.codec.json import DecodeError, decode, encode
from hermes.config.home import Home, config_lock, replace_file
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    Decision,
    DeletePath,
    Deny,
    Effect,
    Principal,
    Scope,
    WritePath,
)
from hermes.core.errors import HermesError
from hermes.core.ports import ConversationText, Policy
from hermes.policy.owner_rules import FolderGrants

DEFAULT_MODE = "default"
PLAN_MODE = "plan"
MODES = (
    SessionMode(id=DEFAULT_MODE, name="Default", description="Ask before each file change."),
    SessionMode(
        id="accept_edits",
        name="Accept Edits",
        description="Change files in the project without asking.",
    ),
    SessionMode(
        id="dont_ask", name="Don't Ask", description="Ask only about effects outside the project."
    ),
    SessionMode(id=PLAN_MODE, name="Plan", description="Read and plan; change and run nothing."),
)
MODE_NAMES = tuple(mode.id for mode in MODES)


class ModePolicy:
    """Wraps a policy; the mode can only make it stricter. Effects that a person allowed for the
    session need no further approval."""

    def __init__(self, inner: Policy) -> None:
        self.mode = DEFAULT_MODE
        self._inner = inner
        self._allowed: set[str] = set()
        self._folders = FolderGrants("")

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        decision = self._inner.decide(effect, principal, origins, seen)
        if not isinstance(decision, Allow) or decision.harmless:
            return decision
        is_read_only = isinstance(effect, CallServer) and not effect.changes
        if self.mode == PLAN_MODE and not is_read_only:
            reason = "The editor is in plan mode: say what you would do, and change nothing."
            return Deny(reason=reason, category="settings")
        if self.mode != DEFAULT_MODE or not isinstance(effect, WritePath | DeletePath):
            return decision
        if effect.path in self._allowed or effect in self._folders:
            return decision
        is_write = isinstance(effect, WritePath)
        return Ask(
            reason=f"{effect.path} would be {'written' if is_write else 'deleted'}.",
            category="settings",
            scopes=("once", "session", "folder") if is_write else ("once", "session"),
        )

    def origin(self, effect: Effect) -> str:
        return self._inner.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        if isinstance(effect, WritePath | DeletePath) and scope == "session":
            self._allowed.add(effect.path)
        if isinstance(effect, WritePath) and scope == "folder":
            self._folders.add(effect)
        self._inner.remember(effect, scope)


def mode_state(current: str) -> SessionModeState:
    return SessionModeState(current_mode_id=current, available_modes=list(MODES))


MODES_FILE = "acp_modes.json"
# Sessions beyond this many start in the default mode again.
MAX_SESSIONS = 500


async def load_mode(home: Home, session_id: str) -> str:
    modes = await asyncio.to_thread(_read, home)
    mode = modes.get(session_id, DEFAULT_MODE)
    return mode if mode in MODE_NAMES else DEFAULT_MODE


async def save_mode(home: Home, session_id: str, mode: str) -> None:
    """Best effort: with a read-only home, the next editor starts in the default mode."""

    def write() -> None:
        with config_lock(home):
            modes = _read(home)
            modes.pop(session_id, None)
            if mode != DEFAULT_MODE:
                modes[session_id] = mode
            newest = dict(list(modes.items())[-MAX_SESSIONS:])
            replace_file(home, home.root / MODES_FILE, encode(newest), durable=False)

    with suppress(HermesError):
        await asyncio.to_thread(write)


def _read(home: Home) -> dict[str, str]:
    try:
        return decode(dict[str, str], (home.root / MODES_FILE).read_bytes())
    except (OSError, DecodeError):
        return {}
