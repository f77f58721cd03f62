"""Fetches, scans and installs plugins, without running their code."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.plugins.contents import Contents, read_contents, remove_copy, write_copy
from hermes.plugins.discovery import CATEGORIES
from hermes.plugins.manifest import FILE, PluginManifest, read_manifest

FindingLevel = Literal["high", "medium", "low"]

_PRIVATE = re.compile(
    r"\.ssh\b|id_(?:rsa|ed25519|ecdsa)|\.aws\b|\.netrc|\.git-credentials|\.gnupg|/etc/shadow|"
    r"\.hermes\b|/\.env\b|^\.env$|\.kube/config|\.npmrc|\.pypirc|/proc/\S*environ|Login Data|"
    r"cookies\.sqlite|auth\.json"
)
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}|(?:\\x[0-9a-f]{2}){100,}")
_RUN_ELSEWHERE = re.compile(r"(?:^|/)(?:setup\.py|conftest\.py|sitecustomize\.py)$|\.pth$")
_OURS = ("hermes.plugins.api", "hermes.images")
_BINARY = (".so", ".pyd", ".dll", ".dylib", ".exe", ".bin")


class CodeFinding(Value):
    file: str
    line: int
    level: FindingLevel
    words: str


def scan_code(contents: Contents) -> tuple[CodeFinding, ...]:
    """Return findings, worst first."""
    found = [each for name, data in contents.items() for each in _scan_file(name, data)]
    order = ("high", "medium", "low")
    return tuple(sorted(found, key=lambda each: (order.index(each.level), each.file, each.line)))


def _scan_file(name: str, data: bytes) -> Iterator[CodeFinding]:
    if name.lower().endswith(_BINARY):
        yield CodeFinding(file=name, line=0, level="medium", words="is native machine code")
    if _RUN_ELSEWHERE.search(name):
        yield CodeFinding(file=name, line=0, level="medium", words="is a file that other tools run")
    if not name.endswith(".py"):
        return
    try:
        text = data.decode("utf-8")
        tree = ast.parse(text)
    except (UnicodeError, SyntaxError, ValueError, RecursionError, MemoryError):
        yield CodeFinding(file=name, line=0, level="high", words="cannot be read as Python")
        return
    aliases = _aliases(tree)
    seen: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        for line, level, message in _node(node, aliases):
            if (level, message) not in seen:
                seen.add((level, message))
                yield CodeFinding(file=name, line=line, level=level, words=message)


def _node(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[int, FindingLevel, str]]:
    match node:
        case ast.Import(names=names):
            for each in names:
                yield from _import(each.name, node.lineno)
        case ast.ImportFrom(module=str(module)):
            yield from _import(module, node.lineno)
        case ast.Call(func=function):
            called = _dotted_name(function, aliases)
            if found := _findings("calls").get(called):
                yield node.lineno, *found
            computed = ast.BinOp | ast.JoinedStr | ast.Call
            if called == "getattr" and any(isinstance(each, computed) for each in node.args[1:2]):
                yield node.lineno, "medium", "looks up computed names"
        case ast.Constant(value=str(text)):
            if _PRIVATE.search(text):
                yield node.lineno, "high", "names a location of keys or logins"
            if _BLOB.search(text):
                yield node.lineno, "high", "contains a long unreadable string"
        case ast.Constant(value=bytes(raw)) if len(raw) > 400:
            yield node.lineno, "medium", "contains a long byte string"
        case ast.Attribute(attr="environ"):
            yield node.lineno, "low", "reads environment variables"
        case ast.Attribute(attr="__subclasses__" | "__globals__" | "__builtins__"):
            yield node.lineno, "high", "accesses interpreter internals"


@cache
def _findings(kind: Literal["imports", "calls"]) -> dict[str, tuple[FindingLevel, str]]:
    """Return level and description by module or function."""
    table = tomllib.loads(Path(__file__).with_name("code_findings.toml").read_text("utf-8"))
    return {
        name: (each["level"], each["words"])
        for each in table["finding"]
        for name in each.get(kind, "").split()
    }


def _import(module: str, line: int) -> Iterator[tuple[int, FindingLevel, str]]:
    if found := _findings("imports").get(module.partition(".")[0]):
        yield line, *found
    if module.startswith("hermes.") and not module.startswith(_OURS):
        yield line, "low", "uses internal modules of Hermes"


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Map import aliases: `from os import system as s`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
    return found


def _dotted_name(node: ast.expr, aliases: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return aliases.get(name, name)
        case ast.Attribute(value=inner, attr=name):
            return f"{_dotted_name(inner, aliases)}.{name}"
        case _:
            return ""


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
    """Fetch from a folder, a git URL or OWNER/REPO[/FOLDER]; raise HermesError."""
    if not ref and (here := _folder(source)):
        return _inspect(here, InstallRecord(source=str(here)))
    address, inner = source, ""
    if found := _SHORT.fullmatch(source):
        owner, name, folder = found.groups()
        address, inner = f"https://github.com/{owner}/{name}", folder.strip("/")
    elif not _URL.fullmatch(source):
        raise UsageError(f"{source!r} must be a folder with a {FILE}, a git URL or OWNER/REPO.")
    if ref.startswith("-"):
        raise UsageError(f"{ref!r} is not a commit; name a branch, tag or commit.")
    depth = () if ref else ("--depth", "1")
    options = ("--no-recurse-submodules", "--no-tags", "--")
    await _git("clone", *depth, *options, address, str(into), env=env)
    if ref:
        await _git("-C", str(into), "checkout", "--detach", ref, "--", env=env)
    commit = (await _git("-C", str(into), "rev-parse", "HEAD", env=env)).strip()
    return _inspect(_below(into, inner), InstallRecord(source=source, ref=ref, commit=commit))


def _folder(source: str) -> Path | None:
    folder = Path(source).expanduser().resolve()
    return folder if (folder / FILE).is_file() else None


def _below(top: Path, inner: str) -> Path:
    whole = (top / inner).resolve()
    if not whole.is_relative_to(top.resolve()):
        raise UsageError(f"{inner} is outside the repository; name a folder in it.")
    return whole


def install_plugin(fetched: FetchedPlugin, plugins: Path, *, force: bool) -> Path:
    """Install below `plugins`; replace an existing plugin only with `force`."""
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


def _inspect(folder: Path, record: InstallRecord) -> FetchedPlugin:
    if not (folder / FILE).is_file():
        raise ConfigError(f"{record.source} has no {FILE}; it is not a plugin.")
    manifest = read_manifest(folder / FILE)
    if manifest.category and manifest.category not in CATEGORIES:
        raise ConfigError(f"There is no plugin category {manifest.category!r}.")
    return FetchedPlugin(manifest=manifest, contents=read_contents(folder), record=record)


async def _git(*arguments: str, env: Mapping[str, str]) -> str:
    """Run git without hooks, prompts and programs of the repository."""
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
            *arguments,
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
