"""The password for `sudo`: asked once in a session, kept in memory, told to nobody but sudo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.workspaces.child import ASIDE
from hermes.workspaces.script_words import simple_commands, sudo_options

ATTEMPTS = 3

AskPassword = Callable[[], Awaitable[str | None]]
# Runs a line of bash with something to read aside; whether it succeeded.
Check = Callable[[str, bytes], Awaitable[bool]]

_FREE = "command sudo -n -v"
_RIGHT = f"command sudo -k -S -p '' -v <&{ASIDE}"
# sudo remembers by terminal and session, or by parent process: that is how the commands of the
# script, which comes after this, need no password. The script itself cannot read it any more.
_OPEN = f"command sudo -S -p '' -v <&{ASIDE} >/dev/null 2>&1; exec {ASIDE}<&-; "


def uses_sudo(script: str) -> bool:
    """Whether one of the commands of a script really is sudo."""
    if "sudo" not in script:
        return False
    return any(sudo_options(command.words) is not None for command in simple_commands(script))


class Sudo:
    """`ask` puts the question to a person, without echo; None is "no". `known` is a password from
    the settings. A password that is wrong is forgotten and asked for again."""

    def __init__(self, ask: AskPassword | None = None, known: str = "") -> None:
        self._ask = ask
        self._password = known.encode()
        self._is_free = False

    def __repr__(self) -> str:
        return f"Sudo(known={bool(self._password)})"

    async def opening(self, check: Check) -> tuple[str, bytes]:
        """The bash to put before a script with sudo in it, and what that reads aside; both empty
        when sudo needs no password or there is none."""
        if self._is_free:
            return "", b""
        if await check(_FREE, b""):
            self._is_free = True
            return "", b""
        for _ in range(ATTEMPTS):
            password = self._password or await self._asked()
            if not password:
                break
            line = password + b"\n"
            if await check(_RIGHT, line):
                self._password = password
                return _OPEN, line
            self._password = b""
        return "", b""

    async def _asked(self) -> bytes:
        answer = await self._ask() if self._ask else None
        return (answer or "").encode()
