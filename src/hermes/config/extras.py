"""The optional parts of Hermes: what each is for, and the one hint that says how to add it."""

from __future__ import annotations

from typing import NamedTuple

# The name of this distribution. `hermes-agent` on the public package index is another product.
DISTRIBUTION = "hermes-one"


class Extra(NamedTuple):
    """An optional part; `megabytes` is what it adds to an installation, with dependencies."""

    name: str
    purpose: str
    megabytes: int


EXTRAS = (
    Extra("local", "models that run inside Hermes, from a GGUF file", 106),
    Extra("mcp", "MCP servers, and running Hermes as one", 14),
    Extra("acp", "editors that speak the Agent Client Protocol", 8),
    Extra("keyring", "keys in the keyring of the system", 18),
    Extra("matrix", "Matrix rooms, with end-to-end encryption", 45),
    Extra("pdf", "text of PDF files, where `pdftotext` is not installed", 2),
    Extra("ddgs", "web search by several search engines, without a key", 28),
    Extra("modal", "commands in Modal sandboxes", 33),
    Extra("docs", "building the documentation site", 17),
    Extra("dev", "tests, lint and types of a clone", 900),
)


def add_command(extra: str) -> str:
    """Return the command that installs an optional part into this installation."""
    return f"hermes extras add {extra}"


def need_extra(what: str, extra: str) -> str:
    """Return the error for a missing optional part. `what` is the plural subject of the
    sentence."""
    return f"{what} need the extra `{extra}`; install it with `{add_command(extra)}`."
