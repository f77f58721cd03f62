"""The only folders in which anything may be written, where a person has named some."""

from __future__ import annotations

import os.path
import posixpath
from collections.abc import Sequence

from hermes.policy.shell.state import SOME, UNKNOWN

# What programs make for a while: it comes to lie in a private folder of the session.
TEMPORARY = f"/tmp/{SOME}"


class SafeRoots:
    """Without any, everything is left to the other rules. Links are followed, but not those of a
    `far` machine."""

    def __init__(self, roots: Sequence[str] = (), *, far: bool = False) -> None:
        self._far = far
        self._roots = tuple(posixpath.normpath(self._real(root)) for root in roots)

    @property
    def temporary(self) -> str:
        """Where programs put what they need for a while."""
        return TEMPORARY if self._roots else "/tmp"

    def refused(self, path: str) -> str:
        """Why nothing may be written at an absolute path, or nothing."""
        known = path.split(UNKNOWN)[0]
        if not self._roots or not known or known.startswith(TEMPORARY) or self._holds(known):
            return ""
        named = ", ".join(self._roots)
        return f"{known} is outside the folders in which anything may be written: {named}."

    def _holds(self, path: str) -> bool:
        real = posixpath.normpath(self._real(path))
        return any(_inside(real, root) for root in self._roots)

    def _real(self, path: str) -> str:
        return path if self._far or "\0" in path else os.path.realpath(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
