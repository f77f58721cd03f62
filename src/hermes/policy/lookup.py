"""Which program a name means: one of the system, or a new file that a folder in PATH holds."""

from __future__ import annotations

import os.path
import posixpath

from hermes.policy.shell.state import UNKNOWN, State, Stream

USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TRUSTED_FOLDERS = (
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/opt/homebrew/bin/",
)


def new_program(name: str, state: State) -> tuple[str, Stream] | None:
    """The file that was written in this session, or by this script, and is run under the name.
    What was there before is the person's own, and does what its name says."""
    for value in state.variables.get("PATH", ()):
        if value == USUAL_PATH:
            continue
        for folder in value.split(":"):
            path = posixpath.normpath(posixpath.join(state.cwd, folder, name))
            if UNKNOWN in path:
                continue
            if (stream := state.files.get(path)) is not None:
                return path, stream
            if os.path.exists(path):  # noqa: PTH110
                break
    return None


def bare_name(name: str) -> str:
    """/usr/bin/ls is ls; a program from any other folder keeps its path."""
    folder, slash, last = name.rpartition("/")
    if slash and last and _plain_folder(folder + slash) in TRUSTED_FOLDERS:
        return last
    return name


def _plain_folder(folder: str) -> str:
    while "//" in folder or "/./" in folder:
        folder = folder.replace("//", "/").replace("/./", "/")
    return folder
