"""Requests about files and folders, as steps over ordinary tool calls."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator

from hermes.core.messages import ToolResult
from hermes.providers.offline.patterns import FILE_TYPES, parse_number
from hermes.providers.offline.steps import (
    CallRequest,
    Slots,
    StepFailed,
    Steps,
    block,
    bullets,
    call,
    folder_label,
    format_size,
    inline,
    plural,
    quote,
    run,
)

PAGE = 200
MAX_FOUND = 100
TREE_DEPTH = 3
NO_GIT = "-not -path '*/.git/*'"

_FENCES = {"py": "python", "js": "javascript", "ts": "typescript", "rs": "rust", "md": "markdown"}
_PERIODS = {
    "today": "-daystart -mtime 0",
    "yesterday": "-daystart -mtime 1",
    "in the last hour": "-mmin -60",
    "in the last 24 hours": "-mmin -1440",
}


def list_files(slots: Slots) -> Steps:
    """List the files and folders of one folder."""
    flags = "-1Ap" if "hidden" in slots else "-1p"
    found = yield from run(f"ls {flags} {_folder(slots)}")
    names = found.splitlines()
    if not names:
        return f"There is nothing in {folder_label(slots)}."
    folders = sum(name.endswith("/") for name in names)
    counts = [plural(len(names) - folders, "file")] if len(names) > folders else []
    counts += [plural(folders, "folder")] if folders else []
    return f"{' and '.join(counts)} in {folder_label(slots)}:\n\n{bullets(names)}"


def list_folders(slots: Slots) -> Steps:
    found = yield from run(f"ls -1p {_folder(slots)}")
    names = [name for name in found.splitlines() if name.endswith("/")]
    if not names:
        return f"There are no folders in {folder_label(slots)}."
    return f"{plural(len(names), 'folder')} in {folder_label(slots)}:\n\n{bullets(names)}"


def tree(slots: Slots) -> Steps:
    script = f"find {_folder(slots)} -mindepth 1 -maxdepth {TREE_DEPTH} -not -path '*/.*' | sort"
    paths = (yield from run(script)).splitlines()
    root = slots.get("folder", ".").rstrip("/")
    parts = [path.removeprefix(f"{root}/").split("/") for path in paths]
    drawn = "\n".join("  " * (len(names) - 1) + names[-1] for names in parts)
    if not drawn:
        return f"There is nothing in {folder_label(slots)}."
    return f"The first {TREE_DEPTH} levels of {folder_label(slots)}:\n\n{block(drawn)}"


def count_entries(slots: Slots) -> Steps:
    """Count in the folder itself and on all levels, because either may be meant."""
    kind, noun = ("f", "file") if slots["entries"].casefold() == "files" else ("d", "folder")
    find = f"find {_folder(slots)} -mindepth 1"
    match = f"-type {kind} -not -name .git {NO_GIT}"
    here = yield from run(f"{find} -maxdepth 1 {match} | wc -l")
    below = yield from run(f"{find} {match} | wc -l")
    if not here.strip().isdigit() or not below.strip().isdigit():
        raise StepFailed(block(here or below))
    extra = "" if here == below else f", {below.strip()} with its subfolders"
    where = folder_label(slots)
    return f"{where[:1].upper()}{where[1:]} has {plural(int(here), noun)}{extra} (hidden ones too)."


def by_size(slots: Slots) -> Steps:
    """Find the largest or smallest files, subfolders included."""
    smallest = slots["size"].casefold() == "smallest"
    found = yield from _ranked(slots, "%s %p", reverse=not smallest)
    rows = [line.split(" ", 1) for line in found]
    named = [f"{inline(_short(path))}, {format_size(int(size))}" for size, path in rows]
    return _ranking(slots, "smallest" if smallest else "largest", named)


def by_date(slots: Slots) -> Steps:
    """Find the newest or oldest files, subfolders included."""
    oldest = slots.get("age", "").casefold() == "oldest"
    found = yield from _ranked(slots, "%T@ %TY-%Tm-%Td %TH:%TM %p", reverse=not oldest)
    rows = [line.split(" ", 3) for line in found]
    named = [f"{inline(_short(path))}, changed {day} {time}" for _, day, time, path in rows]
    return _ranking(slots, "oldest" if oldest else "newest", named)


def changed_files(slots: Slots) -> Steps:
    period = slots["period"].casefold()
    script = f"find {_folder(slots)} -type f {NO_GIT} {_PERIODS[period]}"
    found = yield from _find(script)
    if not found:
        return f"No file in {folder_label(slots)} changed {period}."
    return f"{_found(found, 'file')} changed {period}:\n\n{bullets(found)}"


def find_named(slots: Slots) -> Steps:
    """Find files by name or type, in a folder and below."""
    name = slots.get("name") or slots.get("file") or slots.get("path")
    pattern = f"*{slots['part']}*" if "part" in slots else ""
    name = name or pattern or f"*.{FILE_TYPES[slots['type'].casefold()]}"
    folder, _, base = name.rstrip("/").rpartition("/")
    start = quote(folder) if folder else _folder(slots)
    paths = yield from _find(f"find {start} {NO_GIT} -name {shlex.quote(base)}")
    where = inline(folder) if folder else folder_label(slots)
    if not paths:
        return f"There is no {inline(base)} in {where} or below."
    return f"{_found(paths, 'match')} for {inline(base)} in {where} and below:\n\n{bullets(paths)}"


def file_size(slots: Slots) -> Steps:
    size = yield from _count(f"wc -c {quote(slots['file'])}")
    exact = f" ({size} bytes)" if size >= 1000 else ""
    return f"{inline(slots['file'])} has {format_size(size)}{exact}."


def file_date(slots: Slots) -> Steps:
    found = yield from run(f"date -r {quote(slots['file'])} '+%A, %d %B %Y, %H:%M'")
    return f"{inline(slots['file'])} was last changed on {found.strip()}."


def folder_size(slots: Slots) -> Steps:
    found = yield from run(f"du -sh {_folder(slots)}", accept=(0, 1))
    size = re.search(r"^\s*([\d.,]+\w*)\s", found.splitlines()[-1] if found else "")
    if size is None:
        raise StepFailed(block(found))
    return f"The size of {folder_label(slots)} on disk is {size[1]}."


def read_file(slots: Slots) -> Steps:
    only = slots.get("line", "1")
    begin, _, end = slots.get("range", f"{only}-{only if 'line' in slots else ''}").partition("-")
    first = max(1, int(slots.get("first", begin)))
    last = slots.get("last", end)
    limit = int(last) - first + 1 if last else parse_number(slots.get("number", str(PAGE)))
    path = slots["file"]
    limit = min(max(1, limit), PAGE)
    result = yield from call("read_file", path=path, offset=first, limit=limit)
    lines = [found[1] for found in re.finditer(r"^\s*\d+[|\t](.*)$", result.text, re.MULTILINE)]
    if not lines:
        return f"{inline(path)} is empty." if first == 1 else result.text
    total = result.details.get("total_lines")
    shown_to = first + len(lines) - 1
    extension = path.rpartition(".")[2].casefold() if "." in path else ""
    shown = block("\n".join(lines), name=_FENCES.get(extension, ""), limit=PAGE)
    heading = f"{inline(path)}:"
    if isinstance(total, int) and (first > 1 or shown_to < total):
        heading = f"{inline(path)}, lines {first} to {shown_to} of {total}:"
    return f"{heading}\n\n{shown}"


def read_end(slots: Slots) -> Steps:
    count = parse_number(slots.get("number", "10"))
    found = yield from run(f"tail -n {count} {quote(slots['file'])}")
    if not found.strip():
        return f"{inline(slots['file'])} is empty."
    return f"The end of {inline(slots['file'])}:\n\n{block(found, limit=PAGE)}"


def count_in_file(slots: Slots) -> Steps:
    unit = slots["unit"].casefold()
    flag = {"line": "-l", "word": "-w", "character": "-m"}[unit.removesuffix("s")]
    count = yield from _count(f"wc {flag} {quote(slots['file'])}")
    return f"{inline(slots['file'])} has {plural(count, unit.removesuffix('s'))}."


def find_text(slots: Slots) -> Steps:
    if "todos" in slots:
        pattern, shown = r"\b(TODO|FIXME)\b", "`TODO` or `FIXME`"
    else:
        names = ("quoted", "marker", "identifier", "text")
        text = next(slots[name] for name in names if name in slots)
        pattern, shown = "(?i)" + re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text), inline(text)
    path = slots.get("file") or slots.get("folder") or slots.get("directory", ".")
    where = "this folder" if path == "." else inline(path)
    result = yield from call("search_files", pattern=pattern, target="content", path=path, limit=50)
    count = result.details.get("total_count")
    if not count or not isinstance(count, int):
        return f"Nothing in {where} matches {shown}."
    return f"{plural(count, 'match')} for {shown} in {where}:\n\n{block(result.text.rstrip())}"


def create_file(slots: Slots) -> Steps:
    path = slots["file"]
    if "folder" in slots:
        path = f"{slots['folder'].rstrip('/')}/{path}"
    text = slots.get("rest", slots.get("quoted", ""))
    content = f"{text}\n" if text else ""
    if "overwrite" not in slots:
        found = yield from run(f"ls -d {quote(path)}", accept=(0, 1, 2))
        if found.strip() == path:
            raise StepFailed(f"{inline(path)} exists already; nothing was changed.")
    yield from call("write_file", path=path, content=content)
    size = plural(content.count("\n"), "line") if content else "no text"
    return f"Wrote {inline(path)} with {size}."


def append_text(slots: Slots) -> Steps:
    path = slots["file"]
    lines = [f"+{line}" for line in slots["quoted"].splitlines()]
    patch = [f"*** Update File: {path}", "@@", *lines, "*** End of File"]
    text = "\n".join(["*** Begin Patch", *patch, "*** End Patch"]) + "\n"
    yield from call("patch", mode="patch", patch=text)
    return f"Added {plural(len(lines), 'line')} to the end of {inline(path)}."


def replace_text(slots: Slots) -> Steps:
    old, new, path = slots.get("quoted") or slots["old"], slots["new"], slots["file"]
    yield from call(
        "patch", mode="replace", path=path, old_string=old, new_string=new, replace_all=True
    )
    return f"Replaced {inline(old)} with {inline(new)} in {inline(path)}."


def make_folder(slots: Slots) -> Steps:
    yield from run(f"mkdir {quote(slots['folder'])}")
    return f"Made the folder {inline(slots['folder'])}."


def move(slots: Slots) -> Steps:
    return (yield from _transfer(slots, "mv -nv", "Moved"))


def copy(slots: Slots) -> Steps:
    return (yield from _transfer(slots, "cp -nv", "Copied"))


def delete(slots: Slots) -> Steps:
    if "folder" in slots:
        yield from run(f"rm -r {quote(slots['folder'])}")
        return f"Deleted the folder {inline(slots['folder'])}."
    yield from run(f"rm {quote(slots['file'])}")
    return f"Deleted {inline(slots['file'])}."


def compare_files(slots: Slots) -> Steps:
    one, two = slots["file"], slots["other"]
    found = yield from run(f"diff -u {quote(one)} {quote(two)}", accept=(0, 1))
    if not found.strip():
        return f"{inline(one)} and {inline(two)} are the same."
    return f"{inline(one)} and {inline(two)} differ:\n\n{block(found, name='diff')}"


def _count(script: str) -> Generator[CallRequest, ToolResult, int]:
    found = re.match(r"\s*(\d+)\s", output := (yield from run(script)))
    if found is None:
        raise StepFailed(block(output))
    return int(found[1])


def _folder(slots: Slots) -> str:
    return quote(slots.get("folder") or slots.get("directory", "."))


def _short(path: str) -> str:
    return path.removeprefix("./")


def _ranked(
    slots: Slots, columns: str, *, reverse: bool
) -> Generator[CallRequest, ToolResult, list[str]]:
    """List files with sortable columns, subfolders included; lines of another form are errors."""
    count = parse_number(slots.get("number", "1"))
    order = "-rn" if reverse else "-n"
    listing = f"find {_folder(slots)} -type f {NO_GIT} -printf '{columns}\\n'"
    listed = yield from run(f"{listing} | sort {order} | head -n {max(1, count)}")
    lines = listed.splitlines()
    if any(not re.match(r"[\d.]+ ", line) for line in lines):
        raise StepFailed(block(listed))
    return lines


def _ranking(slots: Slots, order: str, named: list[str]) -> str:
    if not named:
        return f"There are no files in {folder_label(slots)}."
    where = f"in {folder_label(slots)} and below"
    if "number" not in slots:
        return f"The {order} file {where} is {named[0]}."
    return f"The {order} files {where}:\n\n" + "\n".join(f"- {name}" for name in named)


def _find(script: str) -> Generator[CallRequest, ToolResult, list[str]]:
    """Return up to one more than MAX_FOUND paths, sorted."""
    found = yield from run(f"{script} | sort | head -n {MAX_FOUND + 1}")
    if found.startswith("find: "):
        raise StepFailed(block(found))
    return [_short(line) for line in found.splitlines()]


def _found(paths: list[str], noun: str) -> str:
    if len(paths) > MAX_FOUND:
        return f"More than {plural(MAX_FOUND, noun)}"
    return plural(len(paths), noun)


def _transfer(slots: Slots, command: str, verb: str) -> Steps:
    """Copy or move without overwriting: -n keeps an existing file, and -v prints what happened."""
    source = slots["file"]
    target = slots["other"] if "other" in slots else slots["folder"].rstrip("/") + "/"
    found = yield from run(f"{command} {quote(source)} {quote(target)}")
    if "->" not in found:
        raise StepFailed(f"{inline(target)} has such a file already; nothing was changed.")
    return f"{verb} {inline(source)} to {inline(target)}."
