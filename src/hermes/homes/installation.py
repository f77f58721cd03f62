"""Where this Hermes was installed from, and the program that installs Python packages for it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from hermes.codec.values import Value
from hermes.config.extras import DISTRIBUTION
from hermes.core.errors import ConfigError

SECONDS = 600.0
# The folder that contains `src` in a clone.
_SOURCE = Path(__file__).parents[3]

Kind = Literal["checkout", "folder", "file", "git", "index", "copy"]


class Installation(Value):
    """This Hermes: a git checkout at `path`; a package of the Python at `path` that came from a
    `folder`, a wheel or sdist `file`, a `git` URL or a package `index`; or a `copy` of the files
    that no installer knows. `source` is the folder, file or URL it came from."""

    kind: Kind
    path: Path
    source: str = ""
    # For `git`: the commit installed, and the branch or tag that was asked for.
    commit: str = ""
    revision: str = ""

    @property
    def is_package(self) -> bool:
        return self.kind not in ("checkout", "copy")

    def describe(self) -> str:
        if self.kind == "checkout":
            return f"checkout at {self.path}"
        if self.kind == "copy":
            return f"files at {self.path}, without an installer"
        origin = self.source or "the package index"
        return f"package in {self.path}, from {origin}"


def installation() -> Installation:
    if (_SOURCE / ".git").exists():
        return Installation(kind="checkout", path=_SOURCE)
    found = own_distribution()
    if found is None:
        return Installation(kind="copy", path=_SOURCE)
    return _package_origin(json.loads(found.read_text("direct_url.json") or "{}"))


def own_distribution() -> Distribution | None:
    """Return the installed distribution that contains this module; None if there is none."""
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return None
    here = Path(__file__)
    if here.parents[2] != _SOURCE / "src":
        module = Path(str(found.locate_file("/".join(here.parts[-3:]))))
        return found if module.exists() and module.samefile(here) else None
    direct = json.loads(found.read_text("direct_url.json") or "{}")
    editable = direct.get("dir_info", {}).get("editable", False)
    return found if editable and Path(_path_of(direct["url"])) == _SOURCE else None


def _package_origin(direct: dict[str, Any]) -> Installation:
    """Return the origin that the installer recorded (PEP 610); without a record it is the
    index."""
    prefix, url = Path(sys.prefix), str(direct.get("url", ""))
    local = url.startswith("file://")
    if not url:
        return Installation(kind="index", path=prefix)
    if (vcs := direct.get("vcs_info")) is not None:
        commit, revision = vcs.get("commit_id", ""), vcs.get("requested_revision", "")
        return Installation(kind="git", path=prefix, source=url, commit=commit, revision=revision)
    kind: Kind = "folder" if "dir_info" in direct else "file"
    return Installation(kind=kind, path=prefix, source=_path_of(url) if local else url)


def _path_of(url: str) -> str:
    return unquote(urlsplit(url).path)


def installer(*arguments: str) -> tuple[str, ...]:
    """Return a command of the pip of this Python, or of uv where there is no pip. Raises
    ConfigError when there is neither."""
    if find_spec("pip") is not None:
        base = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
        return (*base, *arguments)
    if arguments[0] == "download":
        raise ConfigError(
            "uv cannot download a package to look at it first; "
            f"run `{sys.executable} -m ensurepip` and try again."
        )
    if uv := shutil.which("uv"):
        verb, *rest = (each for each in arguments if each != "--yes")
        return (uv, "pip", verb, "--python", sys.executable, *rest)
    raise ConfigError(
        f"This Python has neither pip nor uv; run `{sys.executable} -m ensurepip` first."
    )


async def run_program(command: Sequence[str], *, fix: str, cwd: Path | None = None) -> str:
    """Return the output of a program. Raises ConfigError with its last line of output when it
    fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except FileNotFoundError:
        raise ConfigError(f"{command[0]} is required, but not installed.") from None
    except TimeoutError:
        process.kill()
        raise ConfigError(f"{command[0]} did not finish within {SECONDS:.0f} s; {fix}.") from None
    if process.returncode:
        last = _error_line((err or out).decode(errors="replace"))
        raise ConfigError(f"{_name(command)} failed ({last}); {fix}.")
    return out.decode(errors="replace").strip()


def _name(command: Sequence[str]) -> str:
    if "pip" in command:
        return "pip"
    return " ".join(command[:2])


def _error_line(output: str) -> str:
    """Return the last line that names an error, else the last one."""
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["no output"])[-1].rstrip(".")
