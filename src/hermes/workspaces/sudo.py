"""The password for `sudo`: asked once per session, kept in memory, passed only to sudo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.policy.shell.simple_commands import simple_commands, sudo_options
from hermes.workspaces.child import PASSWORD_FD

ATTEMPTS = 3

AskPassword = Callable[[], Awaitable[str | None]]
# Runs a line of bash with a password on PASSWORD_FD and returns whether it succeeded.
Check = Callable[[str, bytes], Awaitable[bool]]

_FREE = "command sudo -n -v"
_RIGHT = f"command sudo -k -S -p '' -v <&{PASSWORD_FD}"
# sudo remembers by terminal and session, or by parent process, so the script that follows needs no
# password and cannot read it.
_OPEN = f"command sudo -S -p '' -v <&{PASSWORD_FD} >/dev/null 2>&1; exec {PASSWORD_FD}<&-; "


def uses_sudo(script: str) -> bool:
    """Return whether a command of the script really is sudo."""
    if "sudo" not in script:
        return False
    return any(sudo_options(command.words) is not None for command in simple_commands(script))


class Sudo:
    """`ask` asks the user without echo and returns None for "no". `known` is a password from the
    settings. A wrong password is forgotten and asked for again."""

    def __init__(self, ask: AskPassword | None = None, known: str = "") -> None:
        self._ask = ask
        self._password = known.encode()
        self._is_free = False

    def __repr__(self) -> str:
        return f"Sudo(known={bool(self._password)})"

    async def prepare(self, check: Check) -> tuple[str, bytes]:
        """Return the bash to run before a script with sudo, and the password that it reads; both
        are empty when sudo needs no password or there is none."""
        if self._is_free:
            return "", b""
        if await check(_FREE, b""):
            self._is_free = True
            return "", b""
        for _ in range(ATTEMPTS):
            password = self._password or await self._ask_password()
            if not password:
                break
            line = password + b"\n"
            if await check(_RIGHT, line):
                self._password = password
                return _OPEN, line
            self._password = b""
        return "", b""

    async def _ask_password(self) -> bytes:
        answer = await self._ask() if self._ask else None
        return (answer or "").encode()
