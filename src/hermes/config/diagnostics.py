"""Diagnostics of checks: messages with a level, a machine-readable kind and a fix."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Level = Literal["ok", "warn", "error"]

# Kinds that stop a session: a file that cannot be parsed, and a value without a safe default.
UNREADABLE = "syntax"
REFUSED_VALUE = "refused"


class Diagnostic(Value):
    """The result of one check."""

    level: Level
    # For scripts.
    kind: str
    text: str
    # The next step.
    fix: str = ""
    # The setting or variable concerned.
    key: str = ""


def ok(text: str) -> Diagnostic:
    return Diagnostic(level="ok", kind="ok", text=text)


def warning(kind: str, text: str, *, fix: str = "", key: str = "") -> Diagnostic:
    return Diagnostic(level="warn", kind=kind, text=text, fix=fix, key=key)


def fault(kind: str, text: str, *, fix: str = "", key: str = "") -> Diagnostic:
    return Diagnostic(level="error", kind=kind, text=text, fix=fix, key=key)
