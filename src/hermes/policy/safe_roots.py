"""The only folders in which a session may write, as the settings name them."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.config.execution_settings import SecuritySettings


def safe_roots(security: SecuritySettings) -> tuple[str, ...]:
    """Each entry may be several paths as PATH has them, which is how a variable gives them."""
    given = (path for entry in security.write_safe_roots for path in entry.split(os.pathsep))
    return tuple(str(Path(path).expanduser().absolute()) for path in given if path.strip())
