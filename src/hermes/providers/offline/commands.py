"""Composes the assistant's shell commands and parses their output.

Commands are plain: one program with its flags, at most piped into `sort` and `head`, with quoted
paths
and nothing for the shell to expand. The policy recognises such commands and allows the reading
ones.
"""

from __future__ import annotations

import re
import shlex

from hermes.codec.values import Value

_LONG = re.compile(
    r"(?P<mode>[-dlbcps][-rwxsStTl]{9})[.+@]?\s+\d+\s+(?P<owner>\S+)\s+(?P<group>\S+)\s+"
    r"(?P<size>\d+)\s+(?P<date>\d{4}-\d\d-\d\d \d\d:\d\d|\S+\s+\S+\s+\S+)\s(?P<name>.+)"
)
_SIZED = re.compile(r"\s*(\d+)\s+(.+)")


class ListedFile(Value):
    """One line of a listing. `path` can be passed to a tool, `name` is for display."""

    name: str
    path: str
    is_folder: bool = False
    size: int | None = None
    date: str = ""
    owner: str = ""
    mode: str = ""


def quote_path(path: str) -> str:
    """A path as one shell word. A leading ~ keeps its meaning, a leading dash loses it."""
    if path == "~":
        return path
    if path.startswith("~/"):
        return "~/" + (shlex.quote(path[2:]) if path[2:] else "")
    return shlex.quote("./" + path if path.startswith("-") else path)


def build_command(*words: str, paths: tuple[str, ...] = ()) -> str:
    return " ".join([*words, *(quote_path(path) for path in paths)])


def list_command(path: str, *, flags: str = "-1p") -> str:
    return f"ls {flags}" if path == "." else build_command("ls", flags, paths=(path,))


def find_command(path: str) -> str:
    """Prints the path if it exists; succeeds whenever its folder exists."""
    folder, _, name = path.rstrip("/").rpartition("/")
    folder = folder or ("/" if path.startswith("/") else ".")
    pattern = re.sub(r"[\\*?\[]", r"\\\g<0>", name)
    return f"find {quote_path(folder)} -maxdepth 1 -name {shlex.quote(pattern)}"


def join_path(folder: str, name: str) -> str:
    if folder in ("", "."):
        return name
    return name if name.startswith("/") else f"{folder.rstrip('/')}/{name}"


def parse_listing(script: str, output: str) -> tuple[ListedFile, ...]:
    """The entries printed by `ls`, `du` or `find`; empty for other commands."""
    try:
        words = shlex.split(script)
    except ValueError:
        return ()
    program = words[0] if words else ""
    lines = [line for line in output.splitlines() if line.strip()]
    if program == "ls":
        return _ls_entries(words, lines)
    if program in ("du", "find") and "|" in words:
        return tuple(entry for line in lines if (entry := _sized_entry(line, program)))
    return ()


def _ls_entries(words: list[str], lines: list[str]) -> tuple[ListedFile, ...]:
    flags = "".join(word for word in words[1:] if word.startswith("-"))
    paths = [word for word in words[1:] if not word.startswith("-")]
    folder = paths[-1] if paths and "d" not in flags else "."
    if "l" in flags:
        return tuple(entry for line in lines if (entry := _long_entry(folder, line)))
    return tuple(_short_entry(folder, line) for line in lines)


def _short_entry(folder: str, line: str) -> ListedFile:
    is_folder = line.endswith("/")
    path = line if line == folder else join_path(folder, line.rstrip("/"))
    return ListedFile(name=line, path=path, is_folder=is_folder)


def _long_entry(folder: str, line: str) -> ListedFile | None:
    found = _LONG.fullmatch(line)
    if found is None:
        return None
    name = found["name"]
    if found["mode"][0] == "l":
        name = name.partition(" -> ")[0]
    return ListedFile(
        name=name,
        path=name if name == folder else join_path(folder, name.rstrip("/")),
        is_folder=found["mode"][0] == "d",
        size=int(found["size"]),
        date=" ".join(found["date"].split()),
        owner=found["owner"],
        mode=found["mode"],
    )


def _sized_entry(line: str, program: str) -> ListedFile | None:
    found = _SIZED.fullmatch(line)
    if found is None:
        return None
    path = found[2].removeprefix("./")
    # du counts blocks of 1024 bytes, find counts bytes.
    size = int(found[1]) * (1024 if program == "du" else 1)
    return ListedFile(name=path, path=path, is_folder=program == "du", size=size)
