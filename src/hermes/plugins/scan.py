"""Static analysis of plugin code, as advice for the user. The security boundary is the sandbox."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from hermes.codec.values import Value
from hermes.plugins.contents import Contents

FindingLevel = Literal["high", "medium", "low"]

_IMPORTS: dict[str, tuple[FindingLevel, str]] = {
    "subprocess": ("medium", "starts programs"),
    "multiprocessing": ("medium", "starts processes"),
    "pty": ("medium", "starts programs"),
    "ctypes": ("medium", "calls the system directly"),
    "cffi": ("medium", "calls the system directly"),
    "marshal": ("high", "unpacks code"),
    "pickle": ("medium", "unpacks objects, which can run code"),
    "socket": ("low", "uses the network"),
    "ssl": ("low", "uses the network"),
    "http": ("low", "uses the network"),
    "urllib": ("low", "uses the network"),
    "requests": ("low", "uses the network"),
    "httpx": ("low", "uses the network"),
    "aiohttp": ("low", "uses the network"),
    "smtplib": ("low", "sends mail"),
    "ftplib": ("low", "uses the network"),
}
_CALLS: dict[str, tuple[FindingLevel, str]] = {
    "eval": ("high", "runs text as code"),
    "exec": ("high", "runs text as code"),
    "compile": ("high", "compiles text to code"),
    "__import__": ("medium", "imports computed names"),
    "importlib.import_module": ("medium", "imports computed names"),
    "os.system": ("medium", "starts programs"),
    "os.popen": ("medium", "starts programs"),
    "os.fork": ("medium", "starts processes"),
    "os._exit": ("medium", "ends its process at once"),
    "os.kill": ("medium", "signals processes"),
    "sys.setprofile": ("medium", "traces other code"),
    "sys.settrace": ("medium", "traces other code"),
}
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
    """Returns findings, worst first."""
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
        for line, level, words in _node(node, aliases):
            if (level, words) not in seen:
                seen.add((level, words))
                yield CodeFinding(file=name, line=line, level=level, words=words)


def _node(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[int, FindingLevel, str]]:
    match node:
        case ast.Import(names=names):
            for each in names:
                yield from _import(each.name, node.lineno)
        case ast.ImportFrom(module=str(module)):
            yield from _import(module, node.lineno)
        case ast.Call(func=function):
            called = _dotted_name(function, aliases)
            if called in _CALLS:
                level, words = _CALLS[called]
                yield node.lineno, level, words
            if called == "getattr" and _reaches(node):
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


def _import(module: str, line: int) -> Iterator[tuple[int, FindingLevel, str]]:
    top = module.partition(".")[0]
    if top in _IMPORTS:
        level, words = _IMPORTS[top]
        yield line, level, words
    if module.startswith("hermes.") and not module.startswith(_OURS):
        yield line, "low", "uses internal modules of Hermes"


def _reaches(node: ast.Call) -> bool:
    """Detects `getattr(x, …)` with a computed name."""
    return len(node.args) > 1 and isinstance(node.args[1], ast.BinOp | ast.JoinedStr | ast.Call)


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Maps import aliases: `from os import system as s`."""
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
