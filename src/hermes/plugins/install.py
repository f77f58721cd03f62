"""Fetches and installs plugins, without running their code."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.plugins.contents import Contents, read_contents, remove_copy, write_copy
from hermes.plugins.found import CATEGORIES
from hermes.plugins.manifest import FILE, PluginManifest, read_manifest

RECORD = ".install.json"
SECONDS = 120.0
_SHORT = re.compile(r"([\w.-]+)/([\w.-]+)((?:/[\w.-]+)*)")
_URL = re.compile(r"(?:https://|ssh://|git@|file:///)\S+")
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never",
    "-c", "core.fsmonitor=false", "-c", "core.symlinks=false",
)  # fmt: skip


class InstallRecord(Value):
    """Origin of a plugin. With a `ref` it is pinned."""

    source: str
    ref: str = ""
    commit: str = ""


class FetchedPlugin(Value):
    manifest: PluginManifest
    contents: Contents
    record: InstallRecord

    @property
    def key(self) -> str:
        category = self.manifest.category
        return f"{category}/{self.manifest.name}" if category else self.manifest.name


async def fetch_plugin(source: str, ref: str, into: Path, env: Mapping[str, str]) -> FetchedPlugin:
    """Fetches from a folder, a git URL or OWNER/REPO[/FOLDER]; HermesError."""
    if not ref and (here := _folder(source)):
        return _inspect(here, InstallRecord(source=str(here)))
    address, inner = _address(source)
    commit = await _clone(address, ref, into, env)
    return _inspect(_below(into, inner), InstallRecord(source=source, ref=ref, commit=commit))


def install_plugin(fetched: FetchedPlugin, plugins: Path, *, force: bool) -> Path:
    """Installs below `plugins`; replaces an existing plugin only with `force`."""
    target = plugins / fetched.key
    if target.exists() and not force:
        raise UsageError(f"{fetched.key} is already installed; add --force to replace it.")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_copy(fetched.contents, target)
    for file in target.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    (target / RECORD).write_bytes(encode(fetched.record))
    return target


def read_record(folder: Path) -> InstallRecord | None:
    try:
        return decode(InstallRecord, (folder / RECORD).read_bytes())
    except (OSError, DecodeError):
        return None


def remove_plugin(folder: Path) -> None:
    if folder.is_file():
        folder.unlink()
    else:
        remove_copy(folder)


def _folder(source: str) -> Path | None:
    folder = Path(source).expanduser().resolve()
    return folder if (folder / FILE).is_file() else None


def _below(top: Path, inner: str) -> Path:
    whole = (top / inner).resolve()
    if top.resolve() not in (whole, *whole.parents):
        raise UsageError(f"{inner} leads out of the repository.")
    return whole


def _inspect(folder: Path, record: InstallRecord) -> FetchedPlugin:
    if not (folder / FILE).is_file():
        raise ConfigError(f"{record.source} has no {FILE}; it is not a plugin.")
    manifest = read_manifest(folder / FILE)
    if manifest.category and manifest.category not in CATEGORIES:
        raise ConfigError(f"There is no plugin category {manifest.category!r}.")
    return FetchedPlugin(manifest=manifest, contents=read_contents(folder), record=record)


def _address(source: str) -> tuple[str, str]:
    """Returns repository URL and folder."""
    if _URL.fullmatch(source):
        return source, ""
    if found := _SHORT.fullmatch(source):
        owner, name, inner = found.groups()
        return f"https://github.com/{owner}/{name}", inner.strip("/")
    raise UsageError(f"{source!r} is not a folder with a {FILE}, a git URL or OWNER/REPO.")


async def _clone(address: str, ref: str, into: Path, env: Mapping[str, str]) -> str:
    depth = () if ref else ("--depth", "1")
    await _git(
        "clone", *depth, "--no-recurse-submodules", "--no-tags", "--", address, str(into), env=env
    )
    if ref:
        if ref.startswith("-"):
            raise UsageError(f"{ref!r} is not a commit.")
        await _git("-C", str(into), "checkout", "--detach", ref, "--", env=env)
    return (await _git("-C", str(into), "rev-parse", "HEAD", env=env)).strip()


async def _git(*words: str, env: Mapping[str, str]) -> str:
    """Runs git without hooks, prompts and programs of the repository."""
    safe = {
        "PATH": env.get("PATH", os.defpath),
        "HOME": env.get("HOME", "/"),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C",
    }
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *_OPTIONS,
            *words,
            env=safe,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise HermesError(f"git cannot be started ({error.strerror}); install it.") from error
    try:
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        why = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it failed"]
        raise HermesError(f"git: {why[0]}")
    return out.decode("utf-8", "replace")
