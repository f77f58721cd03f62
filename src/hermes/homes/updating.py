"""Updates Hermes from where it was installed, after showing each step."""

from __future__ import annotations

import re
import shlex
import sys
import zipfile
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.codec.values import Value
from hermes.config.extras import DISTRIBUTION
from hermes.core.errors import ConfigError
from hermes.homes.installation import Installation, installer, own_distribution, run_program
from hermes.version import __version__

START = "from hermes.surfaces.cli.entry import main"
NETWORK = "check the network and try again"


class UpdatePlan(Value):
    """The result of a check for updates, and the steps of the update as commands."""

    current: str
    # The newest version or commit.
    newest: str
    # Where the update comes from.
    source: str
    steps: tuple[tuple[str, ...], ...] = ()
    # Lines about what is new.
    changes: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        return self.current != self.newest

    def step_lines(self) -> list[str]:
        return [shlex.join(step) for step in self.steps]


async def check_for_update(here: Installation) -> UpdatePlan:
    """Look where this installation came from, and nowhere else. Raises ConfigError when that
    cannot be reached or has no newer versions by nature."""
    match here.kind:
        case "checkout":
            return await _check_checkout(here)
        case "folder":
            return _check_folder(here)
        case "file":
            return _check_files(here)
        case "git":
            return await _check_git(here)
        case "index":
            return await _check_index(here)
        case "copy":
            raise ConfigError(
                f"{here.path} was copied there without an installer; update it the same way, or "
                "clone the repository and start its `./hermes`."
            )


async def update(here: Installation, plan: UpdatePlan) -> None:
    """Execute the steps. A checkout is only fast-forwarded, never with local changes."""
    if here.kind == "checkout":
        await _refuse_local_changes(here)
    fix = "read the output of pip"
    for step in plan.steps:
        if step[0] == "git":
            fix = "merge or rebase your own commits yourself"
        await run_program(step, fix=fix, cwd=here.path)


async def migrate_settings(here: Installation) -> None:
    """Migrate the settings with the newly installed program, not with the running one."""
    call = "import sys; from hermes.surfaces.cli.running import run; sys.exit(run(sys.argv[1:]))"
    command = (sys.executable, "-c", call, "config", "migrate")
    await run_program(command, fix="run `hermes config check`", cwd=here.path)


async def remove_package(here: Installation) -> None:
    command = installer("uninstall", "--yes", DISTRIBUTION)
    await run_program(command, fix="remove it with pip yourself", cwd=here.path)


async def _check_checkout(here: Installation) -> UpdatePlan:
    async def git(*words: str, fix: str = "set one with `git branch --set-upstream-to`") -> str:
        return await run_program(("git", *words), fix=fix, cwd=here.path)

    await git("fetch", "--quiet", fix="check the network and the git remote")
    upstream = "@{upstream}"
    newest = await git("rev-parse", "--short", upstream)
    base = await git("merge-base", "HEAD", upstream)
    current = await git("rev-parse", "--short", "HEAD")
    if base == await git("rev-parse", upstream):
        newest = current  # the checkout has all upstream commits, and perhaps more
    lines = await git("log", "--format=%s", f"HEAD..{upstream}")
    branch = await git("rev-parse", "--abbrev-ref", upstream)
    remote = await git("remote", "get-url", branch.partition("/")[0])
    steps: list[tuple[str, ...]] = [("git", "merge", "--ff-only", "--quiet", upstream)]
    changed = await git("diff", "--name-only", f"HEAD...{upstream}", "--", "pyproject.toml")
    if changed and own_distribution() is not None:
        steps.append(installer("install", "--quiet", "--editable", str(here.path)))
    return UpdatePlan(
        current=current,
        newest=newest,
        source=f"{branch} of {remote}",
        steps=tuple(steps),
        changes=tuple(lines.splitlines()),
    )


async def _refuse_local_changes(here: Installation) -> None:
    fix = "commit or stash them first"
    words = ("git", "status", "--porcelain", "--untracked-files=no")
    if await run_program(words, fix=fix, cwd=here.path):
        raise ConfigError(f"{here.path} has local changes; {fix}.")


def _check_folder(here: Installation) -> UpdatePlan:
    folder = Path(here.source)
    version_file = folder / "src" / "hermes" / "version.py"
    if not version_file.is_file():
        raise _source_gone(here)
    found = re.search(r'__version__ = "([^"]+)"', version_file.read_text("utf-8"))
    return UpdatePlan(
        current=__version__,
        newest=found[1] if found else __version__,
        source=here.source,
        steps=(installer("install", "--upgrade", here.source),),
    )


def _check_files(here: Installation) -> UpdatePlan:
    """Compare with the wheels and sdists beside the file of this installation."""
    if here.source.startswith(("http:", "https:")):
        raise ConfigError(
            f"This Hermes came from the single file {here.source}, which has no newer versions; "
            f"install a newer file with `{shlex.join(installer('install', 'FILE'))}`."
        )
    folder = Path(here.source).parent
    if not folder.is_dir():
        raise _source_gone(here)
    stem = DISTRIBUTION.replace("-", "_")
    versions = {
        found[1]: path
        for path in sorted(folder.iterdir())
        if (found := re.fullmatch(rf"{stem}-([^-]+)(?:-.*\.whl|\.tar\.gz)", path.name))
    }
    newest = max((__version__, *versions), key=version_key)
    file = str(versions.get(newest, here.source))
    steps = (installer("install", "--upgrade", file),)
    return UpdatePlan(current=__version__, newest=newest, source=str(folder), steps=steps)


async def _check_git(here: Installation) -> UpdatePlan:
    revision = here.revision or "HEAD"
    command = ("git", "ls-remote", here.source, revision)
    answer = await run_program(command, fix=NETWORK)
    newest = answer.split()[0] if answer else here.commit
    requirement = f"{DISTRIBUTION} @ git+{here.source}@{newest}"
    return UpdatePlan(
        current=here.commit[:8],
        newest=newest[:8],
        source=f"{revision} of {here.source}",
        steps=(installer("install", "--upgrade", requirement),),
    )


async def _check_index(here: Installation) -> UpdatePlan:
    """Download the newest version and read its metadata, because a name on an index says nothing
    about who published it there."""
    with TemporaryDirectory() as folder:
        download = ("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder)
        command = installer(*download, DISTRIBUTION)
        await run_program(command, fix=NETWORK)
        newest = check_identity(folder)
    return UpdatePlan(
        current=__version__,
        newest=newest if version_key(newest) > version_key(__version__) else __version__,
        source="the package index",
        steps=(installer("install", f"{DISTRIBUTION}=={newest}"),),
    )


def check_identity(folder: str) -> str:
    """Return the version of the wheel in a folder. Raises ConfigError when it is not a wheel of
    this project."""
    with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith((".dist-info/METADATA", ".data/scripts/hermes"))
        }
    metadata, script = Parser().parsestr(texts["METADATA"]), texts.get("hermes", "")
    if metadata["Name"] != DISTRIBUTION or START not in script:
        raise ConfigError(
            f"{metadata['Name']} on the package index is not this Hermes; nothing was changed. "
            "Update from a clone of the repository instead."
        )
    return str(metadata["Version"])


def version_key(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return a key that sorts versions; a pre-release comes before its release."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    release = numbers[0] if numbers else "0"
    rest = version.removeprefix(release)
    is_final = not rest or rest.startswith((".post", "+"))
    return tuple(map(int, release.split("."))), is_final, rest


def _source_gone(here: Installation) -> ConfigError:
    return ConfigError(
        f"This Hermes was installed from {here.source}, which is gone; install it again from a "
        "clone or a newer file."
    )
