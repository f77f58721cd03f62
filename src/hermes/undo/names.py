"""Checks whether names in a script mean what they say: earlier commands may have defined functions,
aliases and variables that make a reading program do something else."""

from __future__ import annotations

import os.path
import posixpath
import re
import tempfile
from functools import lru_cache

from hermes.core.ports import ShellSetup
from hermes.undo.coverage import inside

_OBEYED = r"PATH|BASH_ENV|ENV|LD_\w+|GIT_\w+|\w*PAGER|LESSOPEN|LESSCLOSE|RIPGREP_CONFIG_PATH"
_SET_HERE = re.compile(rf"\b(?:{_OBEYED})\+?=")
_SET_BEFORE = re.compile(_OBEYED)
_DEFINED = re.compile(r"^(?:(\S+) \(\) *$|alias (?:-- )?([^=\n]+)=)", re.MULTILINE)
_WORD = re.compile(r"[^\s;&|()<>'\"`$]+")


def has_redefined_names(script: str, shell: ShellSetup, *, cwd: str, root: str) -> bool:
    if _SET_HERE.search(script):
        return True
    if any(_SET_BEFORE.fullmatch(name) and name != "PATH" for name in shell.variables):
        return True
    if shell.definitions != shell.own and any(n in script for n in _names(shell.definitions)):
        return True
    return any(_has(folder, script) for folder in _writable_path_folders(shell.path, cwd, root))


@lru_cache(maxsize=8)
def _names(definitions: str) -> frozenset[str]:
    return frozenset(one or two for one, two in _DEFINED.findall(definitions))


def _writable_path_folders(path: str, cwd: str, root: str) -> list[str]:
    """Return the folders in PATH that an agent writes to."""
    if not path:
        return []
    found = [posixpath.normpath(posixpath.join(cwd, each)) for each in path.split(":")]
    places = (root, "/tmp", tempfile.gettempdir())
    return [each for each in found if any(inside(each, place) for place in places)]


def _has(folder: str, script: str) -> bool:
    return any(os.path.lexists(posixpath.join(folder, each)) for each in _WORD.findall(script))
