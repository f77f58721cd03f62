"""Second hard links for files that are too large to copy. When such a file is deleted or replaced,
the link keeps its content. Only a rewrite in place loses it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hermes.undo.contents import BY_STAMP, LARGE, stamp_token
from hermes.undo.entry import Manifest, PathEntry, read_entry
from hermes.undo.store import CheckpointStore

MOST = 200


def link_large_files(
    store: CheckpointStore, entries: Mapping[str, PathEntry], gaps: Mapping[str, str]
) -> list[tuple[str, PathEntry, bytes]]:
    """Return path, present entry and token of every file that got a second link."""
    found = []
    for path in list(gaps)[:MOST]:
        entry = entries.get(path)
        if entry is None or not entry.is_file or entry.token:
            continue
        token = stamp_token(BY_STAMP, entry)
        if link(store, path, token) and (now := read_entry(path)):
            found.append((path, now, token))
    return found


def link_before_removal(store: CheckpointStore, path: str, entry: PathEntry) -> bytes:
    """Link a large file that is about to be deleted or replaced. Return its token, or b"" when a
    copy is needed."""
    if not entry.is_file or entry.size <= LARGE or entry.links != 1:
        return b""
    token = stamp_token(BY_STAMP, entry)
    return token if link(store, path, token) else b""


def link(store: CheckpointStore, path: str, token: bytes) -> bool:
    """Give a file its second link in the store; impossible across file systems."""
    store.prepare()
    target = store.object_path(token)
    try:
        target.unlink(missing_ok=True)
        os.link(path, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def release_links(
    store: CheckpointStore, guards: Sequence[tuple[bytes, bytes]], before: Mapping[str, PathEntry]
) -> Manifest:
    """After the command, remove the second links of files that still exist unchanged. Return the
    entries before, with their tokens."""
    found: Manifest = {}
    for name, token in guards:
        path, second = os.fsdecode(name), store.object_path(token)
        old, now = before.get(path), read_entry(path)
        held = read_entry(str(second))
        if old is None or held is None:
            continue
        if now is not None and (now.device, now.inode) == (held.device, held.inode):
            second.unlink()
            after = read_entry(path)
            if after is not None and (old.size, old.modified) == (after.size, after.modified):
                found[path] = after
        elif (held.size, held.modified) == (old.size, old.modified):
            store.put_object(token, held.weight)
            found[path] = _with_token(old, token)
        else:
            second.unlink()
    return found


def _with_token(entry: PathEntry, token: bytes) -> PathEntry:
    return PathEntry(
        *(entry.mode, entry.size, entry.modified, entry.changed, entry.inode, entry.device),
        *(entry.links, entry.owner, entry.group, entry.blocks, entry.target, token),
        *(entry.attributes, entry.fresh),
    )
