"""Checks the files and permissions of a home, and repairs permissions."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.document import literal_secrets, read_document
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.migrations import find_legacy
from hermes.config.schema import format_key

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def check_files(config: Config) -> tuple[Diagnostic, ...]:
    """Check config.yaml and `.env`: the findings of the loader, and file modes."""
    home = config.home
    findings: list[Diagnostic] = []
    for path in (home.config, home.env_file):
        if not path.exists():
            findings.append(ok(f"{path} does not exist; it is optional"))
        elif (mode := _excess_mode(path, _PRIVATE_FILE)) is not None:
            text = f"{path} can be read by others (mode {mode:o})"
            fix = f"`hermes doctor --fix`, or chmod 600 {path}"
            findings.append(warning("permissions", text, fix=fix))
        else:
            findings.append(ok(f"{path} is private"))
    literal = [
        warning(
            "literal_secret",
            f"config.yaml: {format_key(path)} holds a secret in plain text",
            fix="put it into .env (`hermes config set NAME_API_KEY …`) and write ${NAME_API_KEY}",
            key=format_key(path),
        )
        for path in literal_secrets(read_document(home).data)
    ]
    old = [
        warning(
            "deprecated",
            f"config.yaml: {key} is the old name of {new}; it still works",
            fix=f"move its value to {new}",
            key=key,
        )
        for key, new in find_legacy(read_document(home).data)
    ]
    return (*findings, *config.diagnostics, *literal, *old)


def check_home(home: Home) -> tuple[Diagnostic, ...]:
    """Check that the home is writable and private."""
    if not home.root.exists():
        return (ok(f"{home.root} does not exist yet; the first session creates it"),)
    if not home.root.is_dir() or not os.access(home.root, os.W_OK | os.X_OK):
        text = f"{home.root} cannot be written"
        fix = "give yourself write access, or set HERMES_HOME to another folder"
        return (fault("permissions", text, fix=fix),)
    if (mode := _excess_mode(home.root, _PRIVATE_FOLDER)) is not None:
        text = f"{home.root} can be entered by others (mode {mode:o})"
        fix = f"`hermes doctor --fix`, or chmod 700 {home.root}"
        return (warning("permissions", text, fix=fix),)
    return (ok(f"{home.root} is writable and private"),)


def repair_permissions(home: Home) -> tuple[Path, ...]:
    """Make the home and its secrets private; return the changed paths."""
    wanted = (
        (home.root, _PRIVATE_FOLDER),
        (home.config, _PRIVATE_FILE),
        (home.env_file, _PRIVATE_FILE),
    )
    repaired = []
    for path, mode in wanted:
        if path.exists() and _excess_mode(path, mode) is not None:
            path.chmod(mode)
            repaired.append(path)
    return tuple(repaired)


def _excess_mode(path: Path, wanted: int) -> int | None:
    """Return the mode, if it allows more than `wanted`."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & ~wanted & 0o777 else None
