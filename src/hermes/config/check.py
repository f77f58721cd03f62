"""Says what is right and wrong with the files of a home, and mends what is safe to mend."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hermes.config.document import literal_secrets, read_document
from hermes.config.findings import Finding, fault, fine, warning
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.schema import format_key

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def check_files(config: Config) -> tuple[Finding, ...]:
    """The state of config.yaml and `.env`: what the loader found, and who may read them."""
    home = config.home
    found: list[Finding] = []
    for path in (home.config, home.env_file):
        if not path.exists():
            found.append(fine(f"{path} is not there, nor needed"))
        elif (mode := _too_open(path, _PRIVATE_FILE)) is not None:
            words = f"{path} can be read by others (mode {mode:o})"
            fix = f"`hermes doctor --fix`, or chmod 600 {path}"
            found.append(warning("permissions", words, fix=fix))
        else:
            found.append(fine(f"{path} is private"))
    return (*found, *config.findings, *_literal_secret_findings(home))


def _literal_secret_findings(home: Home) -> list[Finding]:
    return [
        warning(
            "literal_secret",
            f"config.yaml: {format_key(path)} holds a secret in plain text",
            fix="put it into .env (`hermes config set NAME_API_KEY …`) and write ${NAME_API_KEY}",
            key=format_key(path),
        )
        for path in literal_secrets(read_document(home).data)
    ]


def check_home(home: Home) -> tuple[Finding, ...]:
    """Whether the home can be used, and by its owner only."""
    if not home.root.exists():
        return (fine(f"{home.root} does not exist yet; the first session makes it"),)
    if not home.root.is_dir() or not os.access(home.root, os.W_OK | os.X_OK):
        text = f"{home.root} cannot be written"
        fix = "give yourself write access, or set HERMES_HOME to a folder of yours"
        return (fault("permissions", text, fix=fix),)
    if (mode := _too_open(home.root, _PRIVATE_FOLDER)) is not None:
        text = f"{home.root} can be entered by others (mode {mode:o})"
        fix = f"`hermes doctor --fix`, or chmod 700 {home.root}"
        return (warning("permissions", text, fix=fix),)
    return (fine(f"{home.root} is writable and private"),)


def mend_permissions(home: Home) -> tuple[Path, ...]:
    """Make the home and its secrets private; what was changed."""
    wanted = (
        (home.root, _PRIVATE_FOLDER),
        (home.config, _PRIVATE_FILE),
        (home.env_file, _PRIVATE_FILE),
    )
    mended = []
    for path, mode in wanted:
        if path.exists() and _too_open(path, mode) is not None:
            path.chmod(mode)
            mended.append(path)
    return tuple(mended)


def _too_open(path: Path, wanted: int) -> int | None:
    """The mode, when it allows more than wanted."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & ~wanted & 0o777 else None
