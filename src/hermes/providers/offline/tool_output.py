"""Composes shell commands and parses tool results."""

from __future__ import annotations

import re
import shlex

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import ToolResult

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


_NUMBERED = re.compile(r"\s*(\d+)[|\t](.*)")
_NOTE = re.compile(r"\[[^\W\d_][^\n]*\]")
_FOUND_LINE = re.compile(r"\s*(\d+)\s*[:|-]\s?(.*)")
_COUNT = re.compile(r": \d+$")


class FileLines(Value):
    """Part of a file: its lines from number `first`."""

    lines: tuple[str, ...]
    first: int
    total: int


def has_succeeded(result: ToolResult) -> bool:
    """The tool's own status, and for a command its exit code, unless that has a special meaning
    (grep exits with 1 if it finds nothing)."""
    harmless = exit_code(result) in (None, 0) or "exit_code_meaning" in result.details
    return not result.failed and harmless


def exit_code(result: ToolResult) -> int | None:
    """The exit code of a command; that of a background process says nothing about the call that
    checked it."""
    code = result.details.get("exit_code") if result.name == "terminal" else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def was_refused(result: ToolResult) -> bool:
    """The tool did not run: it failed without an exit code."""
    return result.failed and exit_code(result) in (None, -1)


def output(result: ToolResult) -> str:
    """A command's output without the tool's notes in the last lines."""
    lines = result.text.rstrip("\n").split("\n")
    while lines and _NOTE.fullmatch(lines[-1].strip()):
        lines.pop()
    return "\n".join(lines)


def output_lines(result: ToolResult) -> list[str]:
    return [line for line in output(result).splitlines() if line.strip()]


def file_lines(result: ToolResult) -> FileLines:
    """The lines of read_file without numbers; a footer in brackets is dropped."""
    lines: list[str] = []
    first = 0
    for line in result.text.splitlines():
        found = _NUMBERED.fullmatch(line)
        if found:
            first = first or int(found[1])
            lines.append(found[2])
    total = number(result.details, "total_lines", default=max(0, first - 1) + len(lines))
    return FileLines(lines=tuple(lines), first=first or 1, total=total)


def is_unchanged(result: ToolResult) -> bool:
    """The tool reports that the same lines were shown before instead of showing them."""
    said_so = bool(result.details.get("dedup")) or result.details.get("status") == "unchanged"
    return said_so and not file_lines(result).lines


def found_files(result: ToolResult) -> tuple[str, ...]:
    """The files of a search in order, each once, as short as in the text. The text may list more
    files than the details."""
    shown = [_COUNT.sub("", line) for line in output_lines(result) if _is_name(line)]
    listed = result.details.get("files")
    if not isinstance(listed, list):
        return tuple(dict.fromkeys(shown))
    names = [item.get("path") if isinstance(item, dict) else item for item in listed]
    known = frozenset(shown)
    short = dict.fromkeys(_shorten(name, known) for name in names if isinstance(name, str))
    more = [name for name in shown if name not in short] if short.keys() <= known else []
    return (*short, *more)


def _is_name(line: str) -> bool:
    return not _FOUND_LINE.fullmatch(line) and line != "Nothing found." and line[0] not in " \t["


def _shorten(path: str, shown: frozenset[str]) -> str:
    """The end of an absolute path as shown in the text."""
    start = -1
    while path not in shown:
        start = path.find("/", start + 1)
        if start < 0:
            break
        if path[start + 1 :] in shown:
            return path[start + 1 :]
    return path


def found_count(result: ToolResult) -> int:
    return number(result.details, "total_count", default=len(found_files(result)))


def found_lines(result: ToolResult) -> list[str]:
    """The matching lines of a search in one file, without line numbers."""
    found = [_FOUND_LINE.fullmatch(line) for line in result.text.splitlines()]
    return [line[2] for line in found if line]


def number(details: JsonObject, name: str, *, default: int) -> int:
    value = details.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def strings(details: JsonObject, name: str) -> tuple[str, ...]:
    value = details.get(name)
    items = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in items if isinstance(item, str))


def objects(details: JsonObject, name: str) -> tuple[JsonObject, ...]:
    value = details.get(name)
    items = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in items if isinstance(item, dict))
