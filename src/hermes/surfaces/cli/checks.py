"""Health checks of the machine: Python, packages, certificates, programs, approvals."""

from __future__ import annotations

import shutil
import ssl
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hermes.config.findings import Diagnostic, fault, ok, warning
from hermes.config.settings import Settings

OLDEST_PYTHON = (3, 11)
REQUIRED = ("click", "msgspec", "prompt-toolkit", "rich", "ruamel.yaml")
OPTIONAL = {"xllamacpp": "models that run inside Hermes (the extra `local`)"}
# program: (what it is for, whether Hermes needs it)
PROGRAMS = {
    "bash": ("commands", True),
    "git": ("work with repositories", False),
    "rg": ("fast search; without it search is slower", False),
}


def python_findings() -> list[Diagnostic]:
    here = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return [fault("python", f"Python {here} is too old", fix="install Python 3.11 or newer")]
    place = "a virtual environment" if sys.prefix != sys.base_prefix else "the system's Python"
    return [ok(f"Python {here} in {place} ({sys.prefix})")]


def package_findings() -> list[Diagnostic]:
    found = []
    for name in REQUIRED:
        installed = _version(name)
        found.append(
            ok(f"{name} {installed}")
            if installed
            else fault("package", f"{name} is missing", fix=f"pip install {name}")
        )
    for name, purpose in OPTIONAL.items():
        installed = _version(name)
        found.append(ok(f"{name} {installed or 'is not installed'}; for {purpose}"))
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def certificate_findings(settings: Settings) -> list[Diagnostic]:
    bundle = settings.network.ca_bundle
    if bundle:
        try:
            ssl.create_default_context(cafile=str(Path(bundle).expanduser()))
        except (OSError, ssl.SSLError) as error:
            words = f"network.ca_bundle {bundle} cannot be used ({error.strerror or error})"
            return [fault("certificates", words, fix="`hermes config explain network.ca_bundle`")]
        return [ok(f"certificates of {bundle}")]
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        return [ok(f"certificates of the system ({paths.cafile or paths.capath})")]
    fix = "install the package ca-certificates, or set network.ca_bundle"
    return [warning("certificates", "the system has no certificates", fix=fix)]


def command_findings() -> list[Diagnostic]:
    """Whether `hermes` in PATH is this installation."""
    found = shutil.which("hermes")
    if found is None:
        fix = f"put {Path(sys.prefix) / 'bin'} into PATH, or link its `hermes` into ~/.local/bin"
        return [warning("command", "`hermes` is not found in PATH", fix=fix)]
    if Path(found).resolve().parent != (Path(sys.prefix) / "bin").resolve():
        return [ok(f"`hermes` in PATH is {found}; this one runs from {sys.prefix}")]
    return [ok(f"`hermes` in PATH is {found}")]


def program_findings() -> list[Diagnostic]:
    return [_program(name, *about) for name, about in PROGRAMS.items()]


def _program(name: str, purpose: str, needed: bool) -> Diagnostic:
    if path := shutil.which(name):
        return ok(f"{name} ({path})")
    report = fault if needed else warning
    return report("program", f"{name} is missing; for {purpose}", fix=f"install {name}")


def approval_findings(settings: Settings) -> list[Diagnostic]:
    return [
        ok("risky effects need approval")
        if settings.approvals.mode == "manual"
        else warning(
            "approvals",
            "approvals are off: only the most dangerous commands are refused",
            fix="`hermes config set approvals.mode manual`",
        ),
        ok("without a user to ask, risky effects are denied")
        if settings.approvals.noninteractive_mode == "deny"
        else warning(
            "approvals",
            "without a user to ask, risky effects are allowed",
            fix="`hermes config set approvals.noninteractive_mode deny`",
        ),
        ok("secrets are masked in output and logs")
        if settings.security.redact_secrets
        else warning(
            "redaction",
            "secrets are not masked",
            fix="`hermes config set security.redact_secrets true`",
        ),
    ]
