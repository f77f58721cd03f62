"""Edits single lines of `.env`."""

from __future__ import annotations

from hermes.config.files import replace_file
from hermes.config.home import Home
from hermes.config.secrets import env_lines, format_env_line, parse_assignment
from hermes.core.errors import ConfigError


def set_variable(home: Home, name: str, value: str) -> None:
    """Replaces the last line that sets the variable, or appends a line."""
    lines, mine = _lines(home, name)
    fresh = format_env_line(name, value)
    if mine:
        lines[mine[-1]] = fresh
    else:
        lines[-1:] = [fresh, ""] if not lines[-1] else [lines[-1], fresh, ""]
    _write(home, lines, without=mine[:-1])


def unset_variable(home: Home, name: str) -> bool:
    """Returns whether the variable was set."""
    lines, mine = _lines(home, name)
    if mine:
        _write(home, lines, without=mine)
    return bool(mine)


def _lines(home: Home, name: str) -> tuple[list[str], list[int]]:
    """All lines, and the indices of those that set the variable."""
    try:
        text = home.env_file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"Cannot read {home.env_file} ({error}).") from error
    mine = [
        number - 1
        for number, line in env_lines(text)
        if (parse_assignment(line) or ("",))[0] == name
    ]
    return text.split("\n"), mine


def _write(home: Home, lines: list[str], *, without: list[int]) -> None:
    kept = [line for number, line in enumerate(lines) if number not in without]
    replace_file(home, home.env_file, "\n".join(kept).encode())
