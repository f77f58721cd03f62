"""Diagnostics of checks: messages with a level, a machine-readable kind and a fix."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value

Level = Literal["ok", "warn", "error"]


class Diagnostic(Value):
    """`kind` is for scripts, `fix` is the next step, `key` the setting or variable concerned."""

    level: Level
    kind: str
    text: str
    fix: str = ""
    key: str = ""


def ok(text: str) -> Diagnostic:
    return Diagnostic(level="ok", kind="ok", text=text)


def warning(kind: str, text: str, *, fix: str = "", key: str = "") -> Diagnostic:
    return Diagnostic(level="warn", kind=kind, text=text, fix=fix, key=key)


def fault(kind: str, text: str, *, fix: str = "", key: str = "") -> Diagnostic:
    return Diagnostic(level="error", kind=kind, text=text, fix=fix, key=key)
