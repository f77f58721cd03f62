"""The process environment, the `.env` file, and the secrets from both."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import JsonValue, Value
from hermes.config.child_environment import is_providers
from hermes.config.diagnostics import Diagnostic, warning
from hermes.config.home import Home, replace_file
from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})


def env_flag(env: Mapping[str, str], name: str) -> bool:
    """Whether a variable is set to a true word."""
    return env.get(name, "").strip().lower() in TRUE_WORDS


def set_time_zone(name: str) -> str:
    """Set the time zone of this process and its children. Return an error message for an unknown
    name, else ""."""
    # Slow to load and rarely needed.
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return f"timezone: unknown zone {name!r}; use a name like Europe/Berlin."
    os.environ["TZ"] = name
    time.tzset()
    return ""


# Patterns are compiled on first use: most starts need none of them.
_LINE = r"(?s)\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z"
_SECRET_NAME = (
    r"(?i)(?:^|_)(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)"
    r"(?:_[A-Z0-9]{1,3})?$"
)
# A value in single or double quotes, and a comment.
_QUOTED = r"""(?s)(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?"""
_BARE_VALUE = r"[A-Za-z0-9_./:@%+,=~^-]*"
_USER_INFO = r"://[^/@\s]+@"
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# Shorter values occur in ordinary words; masking them would garble every line.
MIN_MASKED_LENGTH = 8

# Placeholders that people write instead of a secret.
_NO_SECRETS = frozenset(
    (
        "changeme", "default", "disabled", "enabled", "example", "localhost", "optional",
        "password", "postgres", "required", "secret", "undefined", "unknown", "username",
    )
)  # fmt: skip

SecretSource = Literal[".env", "environment"]


# Inherited by the commands that an agent of the gateway runs.
GATEWAY_MARK = "HERMES_IN_GATEWAY"


def mark_gateway() -> None:
    """Let child processes know that they run inside the gateway."""
    os.environ[GATEWAY_MARK] = "1"


def in_gateway(env: Mapping[str, str]) -> bool:
    return env.get(GATEWAY_MARK) == "1"


def process_environment() -> dict[str, str]:
    """Return a copy of the variables of this process."""
    return dict(os.environ)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a key, token or password."""
    return re.search(_SECRET_NAME, name) is not None


def mask(value: str) -> str:
    """Shorten a secret so that its owner recognises it but nobody can use it."""
    return "***" if len(value) < 18 else f"{value[:6]}...{value[-4:]}"


def display_value(value: JsonValue, *, secret: bool = False) -> JsonValue:
    """Return a setting's value for display: secrets and passwords in URLs are masked."""
    if isinstance(value, dict):
        return {name: display_value(held, secret=secret) for name, held in value.items()}
    if isinstance(value, str) and value:
        return mask(value) if secret else re.sub(_USER_INFO, "://***@", value)
    return value


def is_maskable(value: str) -> bool:
    """Whether a configured value should be masked: masking a common word, a path or a small number
    everywhere would make texts unreadable."""
    if len(value) < MIN_MASKED_LENGTH or value.lower() in _NO_SECRETS:
        return False
    if value.startswith(("/", "~/", "./")) and " " not in value and "=" not in value:
        return False
    return not re.fullmatch(r"https?://[^@?\s]*", value) or "hook" in value


class EnvFile(Value):
    """The variables of a `.env` file, and its errors."""

    variables: dict[str, str] = {}
    diagnostics: tuple[Diagnostic, ...] = ()

    def secret_values(self) -> list[str]:
        return [value for name, value in self.variables.items() if is_secret_name(name)]


def read_env_file(home: Home) -> EnvFile:
    try:
        text = home.env_file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return EnvFile()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        unreadable = warning(
            "not_readable", f"{home.env_file} cannot be read ({why}) and is ignored"
        )
        return EnvFile(diagnostics=(unreadable,))
    return parse_env(text)


def parse_env(text: str) -> EnvFile:
    """Parse `NAME=value` lines, with optional `export` and quotes. Bad lines become findings."""
    variables: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for number, line in env_lines(text):
        if (assignment := parse_assignment(line)) is None:
            findings.append(
                warning("env_file", f".env line {number} is not NAME=value and is ignored")
            )
        else:
            variables[assignment[0]] = assignment[1]
    return EnvFile(variables=variables, diagnostics=tuple(findings))


def env_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with content, numbered from 1."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def parse_assignment(line: str) -> tuple[str, str] | None:
    """Return name and value, or None for a bad name or an unclosed quote."""
    match = re.match(_LINE, line)
    if match is None:
        return None
    name, text = match.groups()
    if text[:1] not in ("'", '"'):
        return name, re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
    if (quoted := re.fullmatch(_QUOTED, text)) is None:
        return None
    if quoted[1] is not None:
        return name, quoted[1]
    return name, re.sub(r"(?s)\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted[2])


def format_env_line(name: str, value: str) -> str:
    """Return the line that `parse_env` reads as this value."""
    if re.fullmatch(_BARE_VALUE, value):
        return f"{name}={value}"
    for letter, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(letter, escaped)
    return f'{name}="{value}"'


class Secrets:
    """Secrets by name. `.env` overrides the process environment: it belongs to this home."""

    def __init__(self, file: Mapping[str, str], process: Mapping[str, str]) -> None:
        self._file = dict(file)
        self._process = process

    def get(self, name: str) -> str:
        """Return the value, or ""."""
        return self._file.get(name) or self._process.get(name, "")

    def add(self, name: str, value: str) -> None:
        """Add a variable that was just written to `.env`."""
        self._file[name] = value

    def source(self, name: str) -> SecretSource | None:
        if self._file.get(name):
            return ".env"
        return "environment" if self._process.get(name) else None

    def variables(self) -> dict[str, str]:
        """Return all variables; those of `.env` override the process environment."""
        return {**self._process, **self._file}

    def names(self) -> tuple[str, ...]:
        """Return the names of non-empty variables that look like secrets."""
        known = {*self._file, *self._process}
        return tuple(sorted(name for name in known if is_secret_name(name) and self.get(name)))

    def values(self) -> frozenset[str]:
        """Return all secret values, including overridden ones."""
        pairs = (*self._file.items(), *self._process.items())
        return frozenset(
            value
            for name, value in pairs
            if is_secret_name(name) and len(value) >= MIN_MASKED_LENGTH
        )

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.names())})"


def set_variable(home: Home, name: str, value: str | None) -> bool:
    """Replace the last line that sets the variable, or append a line; None removes all of them.
    Return whether the variable was set before."""
    try:
        text = home.env_file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"Cannot read {home.env_file} ({error}); correct the file.") from error
    lines = text.split("\n")
    own = [
        number - 1
        for number, line in env_lines(text)
        if (parse_assignment(line) or ("",))[0] == name
    ]
    without = set(own)
    if value is not None and own:
        lines[own[-1]] = format_env_line(name, value)
        without.remove(own[-1])
    elif value is not None:
        fresh = [format_env_line(name, value), ""]
        lines[-1:] = [lines[-1], *fresh] if lines[-1] else fresh
    if own or value is not None:
        kept = [line for number, line in enumerate(lines) if number not in without]
        replace_file(home, home.env_file, "\n".join(kept).encode())
    return bool(own)


class HomeVault:
    """The `Vault` of a home: secrets are stored in its `.env` file."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._secrets = run.config.secrets

    def get(self, name: str) -> str:
        """Return the value, also of a secret that another process added to `.env` since the
        start."""
        value = self._secrets.get(name)
        if not value and (saved := read_env_file(self._run.home).variables.get(name, "")):
            self._run.redactor.know(saved)
            self._secrets.add(name, saved)
        return value or self._secrets.get(name)

    def names(self) -> tuple[str, ...]:
        return self._secrets.names()

    def keep(self, name: str, value: str) -> None:
        # Registered before it is stored, so that it is masked from the start.
        self._run.redactor.know(value)
        set_variable(self._run.home, name, value)
        self._secrets.add(name, value)

    def may_pass(self, name: str) -> bool:
        return not is_providers(name)
