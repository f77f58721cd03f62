"""The folders to which the settings limit a session's writes."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.config.execution_settings import SecuritySettings


def safe_roots(security: SecuritySettings) -> tuple[str, ...]:
    """An entry may list several paths in PATH syntax, as environment variables do."""
    paths = (path for entry in security.write_safe_roots for path in entry.split(os.pathsep))
    return tuple(str(Path(path).expanduser().absolute()) for path in paths if path.strip())
