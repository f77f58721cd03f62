"""Plans that inspect folders: listings, trees, sizes, dates."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
    StepOutcome,
    Steps,
    StepTask,
    checked_call,
    format_size,
    inline_code,
    markdown_table,
    run_command,
    terminal,
)
from hermes.providers.offline.plans.files import read
from hermes.providers.offline.slots import looks_like_file
from hermes.providers.offline.tool_output import (
    ListedFile,
    build_command,
    found_count,
    found_files,
    has_succeeded,
    join_path,
    list_command,
    output,
    output_lines,
    parse_listing,
    quote_path,
    was_refused,
)

MAX_ROWS = 20
MAX_RECENT = 50
TREE_FILES = 300
TREE_LINES = 80

_ORDERS = {"size": "S", "smallest": "Sr", "date": "t", "oldest": "tr"}


def list_files(task: StepTask) -> Steps:
    hidden = "A" if task.has("hidden") else ""
    order = task.slot("order")
    flags = f"-l{hidden}{_ORDERS.get(order, '')}" if order else f"-1{hidden}p"
    script = list_command(task.path, flags=flags)
    result = yield from run_command(script)
    entries = parse_listing(script, output(result))
    if order in ("size", "smallest"):
        # The size of a folder entry says nothing about its content.
        entries = tuple(sorted(entries, key=lambda entry: entry.is_folder))
    return _listing(task, entries, as_table=bool(order))


def list_folders(task: StepTask) -> Steps:
    script = list_command(task.path)
    result = yield from run_command(script)
    folders = [entry for entry in parse_listing(script, output(result)) if entry.is_folder]
    if not folders:
        return task.answer("folders.none", place=task.place)
    head = task.say.count("folders", len(folders), place=task.place)
    return StepOutcome(
        text=f"{head}\n\n{task.say.bullets([inline_code(entry.name) for entry in folders])}"
    )


def open_path(task: StepTask) -> Steps:
    """Shows a file or lists a folder."""
    if task.has("parent"):
        joint = join_path(task.slot("parent"), task.path)
        task = task.with_slot("path", joint).with_slot("parent", "")
    if looks_like_file(task.path) and not task.path.endswith("/"):
        return (yield from read(task))
    script = list_command(task.path)
    result = yield from run_command(script)
    entries = parse_listing(script, output(result))
    if [entry.name for entry in entries] == [task.path]:
        return (yield from read(task))
    return _listing(task, entries, as_table=False)


def show_item(task: StepTask) -> Steps:
    """One of the listed items by its number, or what "it" refers to."""
    if task.has("path"):
        return (yield from open_path(task))
    path = task.focus.resolve(task.slot("n", "1"))
    if not path:
        return task.answer("nothing_before")
    return (yield from open_path(task.with_slot("path", path)))


def tree(task: StepTask) -> Steps:
    result = yield from checked_call(
        "search_files", pattern="*", target="files", path=task.path, limit=TREE_FILES
    )
    files = [_relative(name, task.path) for name in found_files(result)]
    if not files:
        return task.answer("files.none", place=task.place)
    lines = _draw_tree(sorted(files), task.number("n", 4))
    head = task.say.count("tree", found_count(result), place=task.place)
    return StepOutcome(text=f"{head}\n\n{task.say.block(lines, limit=TREE_LINES)}")


def biggest_file(task: StepTask) -> Steps:
    """In one folder; with `deep` in all folders below."""
    smallest = task.slot("order") == "smallest"
    if task.has("deep"):
        count = max(1, min(task.number("n", 1), MAX_ROWS))
        script = (
            f"find {quote_path(task.path)} -type f -not -path '*/.git/*' -printf '%s %p\\n'"
            f" | sort {'-n' if smallest else '-rn'} | head -n {count}"
        )
    else:
        script = list_command(task.path, flags="-lASr" if smallest else "-lAS")
    return (yield from _extreme(task, script, "smallest" if smallest else "biggest"))


def newest_file(task: StepTask) -> Steps:
    oldest = task.slot("order") == "oldest"
    script = list_command(task.path, flags="-lAtr" if oldest else "-lAt")
    return (yield from _extreme(task, script, "oldest" if oldest else "newest"))


def file_info(task: StepTask) -> Steps:
    script = list_command(task.path, flags="-ld") if task.path != "." else "ls -ld ."
    result = yield from run_command(script)
    entries = parse_listing(script, output(result))
    if not entries:
        return StepOutcome(text=task.say.block(output_lines(result)))
    entry = entries[0]
    if entry.is_folder:
        return (yield from disk_use(task))
    return task.answer(
        "info.file",
        path=inline_code(entry.path),
        size=_exact_size(task, entry.size or 0),
        date=entry.date,
        mode=inline_code(entry.mode),
        owner=entry.owner,
    )


def disk_use(task: StepTask) -> Steps:
    script = build_command("du", "-sh", paths=(task.path,))
    result = yield from terminal(script)
    amounts = [line.split()[0] for line in output_lines(result) if line.split()[0][0].isdigit()]
    # du exits with an error if it could not enter a folder, but still prints the sum.
    if not amounts:
        return explain_failure(task, result, script)
    return task.answer("disk_use", place=task.place, size=amounts[-1])


def folder_sizes(task: StepTask) -> Steps:
    script = build_command("du", "-k", "-d", "1", paths=(task.path,)) + " | sort -rn | head -n 16"
    result = yield from terminal(script)
    entries = parse_listing(script, output(result))
    if not entries:
        return explain_failure(task, result, script)
    total, parts = entries[0], entries[1:]
    head = task.say("disk_use", place=task.place, size=format_size(total.size or 0))
    rows = [(inline_code(entry.path), format_size(entry.size or 0)) for entry in parts]
    if not rows:
        return StepOutcome(text=f"{head} {task.say('folders.none', place=task.place)}")
    head = f"{head} {task.say('folder_sizes')}"
    return StepOutcome(
        text=f"{head}\n\n{markdown_table((task.say('head.folder'), task.say('head.size')), rows)}"
    )


def exists(task: StepTask) -> Steps:
    script = build_command("ls", "-dp", paths=(task.path,))
    result = yield from terminal(script)
    if was_refused(result):
        return explain_failure(task, result, script)
    if not has_succeeded(result):
        return task.answer("exists.no", path=inline_code(task.path))
    is_folder = output(result).rstrip().endswith("/")
    return task.answer("exists.folder" if is_folder else "exists.file", path=inline_code(task.path))


def recent_files(task: StepTask) -> Steps:
    wanted = max(1, min(task.number("n", 10), MAX_RECENT))
    result = yield from checked_call(
        "search_files", pattern="*", target="files", path=task.path, limit=wanted
    )
    files = found_files(result)[:wanted]
    if not files:
        return task.answer("files.none", place=task.place)
    head = task.say("recent", place=task.place)
    return StepOutcome(text=f"{head}\n\n{task.say.bullets([inline_code(name) for name in files])}")


def empty_files(task: StepTask) -> Steps:
    script = f"find {quote_path(task.path)} -type f -empty -not -path '*/.git/*'"
    result = yield from run_command(script)
    names = [line.removeprefix("./") for line in output_lines(result)]
    if not names:
        return task.answer("empty_files.none", place=task.place)
    head = task.say.count("empty_files", len(names), place=task.place)
    return StepOutcome(text=f"{head}\n\n{task.say.bullets([inline_code(name) for name in names])}")


def _listing(task: StepTask, entries: Sequence[ListedFile], *, as_table: bool) -> StepOutcome:
    if not entries:
        return task.answer("list.empty", place=task.place)
    head = task.say.count("list", len(entries), place=task.place)
    if as_table:
        return StepOutcome(text=f"{head}\n\n{_table(task, entries)}")
    return StepOutcome(
        text=f"{head}\n\n{task.say.bullets([inline_code(entry.name) for entry in entries])}"
    )


def _table(task: StepTask, entries: Sequence[ListedFile]) -> str:
    rows = [
        (
            inline_code(entry.name),
            "" if entry.is_folder else format_size(entry.size or 0),
            entry.date,
        )
        for entry in entries[:MAX_ROWS]
    ]
    heads = (task.say("head.name"), task.say("head.size"), task.say("head.changed"))
    if not any(date for _, _, date in rows):
        shown = markdown_table(heads[:2], [row[:2] for row in rows])
    else:
        shown = markdown_table(heads, rows)
    left_out = len(entries) - MAX_ROWS
    return f"{shown}\n\n{task.say('and_more', count=left_out)}" if left_out > 0 else shown


def _extreme(task: StepTask, script: str, key: str) -> Steps:
    result = yield from run_command(script)
    files = [entry for entry in parse_listing(script, output(result)) if not entry.is_folder]
    if not files:
        return task.answer("files.none", place=task.place)
    wanted = max(1, task.number("n", 1))
    if wanted > 1:
        head = task.say(f"extreme.{key}.some", place=task.place)
        return StepOutcome(text=f"{head}\n\n{_table(task, files[:wanted])}")
    first = files[0]
    task.focus.file = first.path
    facts = {
        "path": inline_code(first.path),
        "size": format_size(first.size or 0),
        "date": first.date,
    }
    return task.answer(f"extreme.{key}", place=task.place, **facts)


def _exact_size(task: StepTask, count: int) -> str:
    exact = task.say.count("bytes", count)
    return exact if count < 1000 else f"{format_size(count)} ({exact})"


def _relative(name: str, folder: str) -> str:
    name = name.removeprefix("./")
    return name.removeprefix(join_path(folder, "")) if folder != "." else name


def _draw_tree(files: list[str], depth: int) -> list[str]:
    """Paths as an indented tree, folders with a slash."""
    lines: list[str] = []
    open_folders: list[str] = []
    for file in files:
        parts = file.split("/")
        folders = parts[:-1][:depth]
        shared = 0
        while shared < min(len(folders), len(open_folders)) and (
            folders[shared] == open_folders[shared]
        ):
            shared += 1
        for level in range(shared, len(folders)):
            lines.append("  " * level + folders[level] + "/")
        open_folders = folders
        if len(parts) - 1 <= depth:
            lines.append("  " * len(folders) + parts[-1])
    return lines
