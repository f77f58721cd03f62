"""Programs of others that judge our protocols: scripts/install_protocol_clients.sh brings them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix, "protocol-clients", "node_modules", ".bin")
# Their own Node comes first: one of them needs a newer one than many systems bring.
SEARCHED = os.pathsep.join((str(FOLDER), os.environ.get("PATH", "")))


def other(name: str) -> str:
    """Where such a program is; "" where it is not installed."""
    return shutil.which(name, path=SEARCHED) or ""


def needs(name: str) -> pytest.MarkDecorator:
    reason = f"{name} is not there: scripts/install_protocol_clients.sh brings it"
    return pytest.mark.skipif(not other(name), reason=reason)


def with_others(env: dict[str, str]) -> dict[str, str]:
    """The same variables, with these programs to be found."""
    return {**env, "PATH": SEARCHED}
