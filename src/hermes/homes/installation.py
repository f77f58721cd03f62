"""How Hermes is installed, and how it is updated."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.errors import ConfigError
from hermes.version import __version__

PACKAGE = "hermes-agent"
SECONDS = 600.0


class Installation(Value):
    """A git checkout at `path`, or a package of the Python at `path`."""

    kind: Literal["checkout", "package"]
    path: Path


class UpdateNotice(Value):
    """The result of a check for updates."""

    current: str
    # The newest version or commit.
    newest: str
    # Lines about what is new.
    changes: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        return self.current != self.newest


def installation() -> Installation:
    source = Path(__file__).parents[3]
    if (source / ".git").exists():
        return Installation(kind="checkout", path=source)
    return Installation(kind="package", path=Path(sys.prefix))


async def check_for_update(here: Installation) -> UpdateNotice:
    """Query the package index or the git remote. Raises ConfigError when it cannot be reached."""
    if here.kind == "package":
        output = await _run(
            here, *_pip("index", "versions", PACKAGE), fix="check the network and try again"
        )
        found = re.search(rf"{PACKAGE} \(([^)]+)\)", output)
        return UpdateNotice(current=__version__, newest=found[1] if found else __version__)
    await _run(here, "git", "fetch", "--quiet", fix="check the network and the git remote")
    upstream = "@{upstream}"
    fix = "set one with `git branch --set-upstream-to`"
    newest = await _run(here, "git", "rev-parse", "--short", upstream, fix=fix)
    base = await _run(here, "git", "merge-base", "HEAD", upstream, fix=fix)
    current = await _run(here, "git", "rev-parse", "--short", "HEAD", fix=fix)
    if base == await _run(here, "git", "rev-parse", upstream, fix=fix):
        newest = current  # the checkout has all upstream commits, and perhaps more
    lines = await _run(here, "git", "log", "--format=%s", f"HEAD..{upstream}", fix=fix)
    return UpdateNotice(current=current, newest=newest, changes=tuple(lines.splitlines()))


async def update(here: Installation) -> None:
    """Update to the newest version. A checkout is fast-forwarded, and only if it has no local
    changes."""
    if here.kind == "package":
        await _run(here, *_pip("install", "--upgrade", PACKAGE), fix="read the output of pip")
        return
    fix = "commit or stash them first"
    if await _run(here, "git", "status", "--porcelain", "--untracked-files=no", fix=fix):
        raise ConfigError(f"{here.path} has local changes; {fix}.")
    fix = "merge or rebase your own commits yourself"
    await _run(here, "git", "merge", "--ff-only", "--quiet", "@{upstream}", fix=fix)


async def migrate_settings() -> None:
    """Migrate the settings with the newly installed program, not with the running one."""
    call = "import sys; from hermes.surfaces.cli.running import run; sys.exit(run(sys.argv[1:]))"
    await _run(
        installation(), sys.executable, "-c", call, "config", "migrate",
        fix="run `hermes config check`",
    )  # fmt: skip


async def remove_package(here: Installation) -> None:
    await _run(here, *_pip("uninstall", "--yes", PACKAGE), fix="remove it with pip yourself")


def _pip(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)


async def _run(here: Installation, *command: str, fix: str) -> str:
    """Return the output of a program. Raises ConfigError with its last line of output when it
    fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=here.path,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except FileNotFoundError:
        raise ConfigError(f"{command[0]} is not installed; install it and try again.") from None
    except TimeoutError:
        process.kill()
        raise ConfigError(f"{command[0]} did not finish within {SECONDS:.0f} s; {fix}.") from None
    if process.returncode:
        last = (err or out).decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigError(f"{' '.join(command[:2])} failed ({' '.join(last)}); {fix}.")
    return out.decode(errors="replace").strip()
