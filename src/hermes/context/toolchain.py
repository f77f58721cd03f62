"""What a model would get wrong about this machine: a sentence or two, mostly none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NO_PYTHON = "There is no Python here."
ONLY_PYTHON3 = "Python: python3."
NO_PIP = "pip is missing; use {}."
MANAGED = "pip: in virtual environments only."
WSL = "This is Windows Subsystem for Linux: drives of Windows are below /mnt."
TERMUX = "This is Termux on Android: programs are installed with pkg, and there is no root."
_KERNEL = Path("/proc/sys/kernel/osrelease")
_MARK = "EXTERNALLY-MANAGED"


def toolchain_notes(env: Mapping[str, str], kernel: Path = _KERNEL) -> str:
    """Found by looking, nothing is started: this is on the way of every new session."""
    return " ".join(filter(None, (_system(env, kernel), *_python(env.get("PATH", "")))))


def _system(env: Mapping[str, str], kernel: Path) -> str:
    if "TERMUX_VERSION" in env:
        return TERMUX
    try:
        return WSL if "microsoft" in kernel.read_text().lower() else ""
    except OSError:
        return ""


def _python(path: str) -> tuple[str, ...]:
    three, plain = _which("python3", path), _which("python", path)
    if not three and not plain:
        return (NO_PYTHON,)
    name = "" if plain else ONLY_PYTHON3
    if _which("pip", path) or _which("pip3", path):
        return (name, MANAGED if _is_managed(three or plain) else "")
    other = next((each for each in ("uv", "conda", "pipx") if _which(each, path)), "")
    return (name, NO_PIP.format(other) if other else "pip is missing.")


def _which(name: str, path: str) -> str:
    for folder in path.split(os.pathsep):
        if folder and os.access(found := f"{folder}/{name}", os.X_OK):
            return found
    return ""


def _is_managed(python: str) -> bool:
    """Whether its system looks after its packages, and forbids others to."""
    if (Path(python).parent.parent / "pyvenv.cfg").exists():
        return False
    real = Path(python).resolve()
    return (real.parent.parent / "lib" / real.name / _MARK).exists()
