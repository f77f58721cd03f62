"""Judges the members of an archive before any of them is written."""

from __future__ import annotations

import posixpath
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Allow, Decision, Deny
from hermes.policy.patterns import regex
from hermes.policy.places.files import Files
from hermes.policy.places.places import lists
from hermes.policy.places.spelling import readings, why_unusable

MOST_BYTES = 1024 * 1024 * 1024
MOST_RATIO = 200
# Below this a high ratio is only a file of zeros.
_RATIO_FROM = 16 * 1024 * 1024
_DRIVE = regex(r"^[A-Za-z]:")
_SET_ID = 0o6000

Kind = Literal["file", "folder", "symlink", "hardlink", "device", "pipe", "socket"]


class Member(Value):
    """One entry of an archive. `link` is where a link leads; `packed` the size in the archive."""

    name: str
    kind: Kind = "file"
    link: str = ""
    size: int = 0
    packed: int = 0
    mode: int = 0


def parse_member(given: JsonObject) -> Member:
    """A member from loose fields, as a listing or a dialogue has them; DecodeError. A name of the
    form `a -> b` is a symbolic link, as `tar` and `unzip` list them."""
    fields: JsonObject = {
        name: given[name] for name in ("kind", "link", "size", "packed", "mode") if name in given
    }
    name = str(given.get("value", given.get("name", "")))
    if "link" not in fields and " -> " in name:
        name, _, fields["link"] = name.partition(" -> ")
    if "link" in fields:
        fields.setdefault("kind", "symlink")
    return convert(Member, {"name": name, **fields})


def judge_member(member: Member, files: Files, folder: str = "") -> Decision:
    """Whether the member may be unpacked into `folder`, which is part of the workspace."""
    if refused := _refused_size(member) or _refused_name(member.name):
        return refused
    if member.kind in ("device", "pipe", "socket"):
        return _deny(f"{member.name!a} is a {member.kind}, not a file.")
    if member.mode & _SET_ID and member.kind == "file":
        return _deny(f"{member.name!a} would run with another user's privileges.")
    if member.kind in ("symlink", "hardlink") and (refused := _refused_link(member)):
        return refused
    decision = files.write(posixpath.join(folder, member.name), "")
    if member.kind == "folder" and isinstance(decision, Allow):
        return Allow()
    return decision


def _refused_size(member: Member) -> Deny | None:
    if member.size < 0 or member.size > MOST_BYTES:
        return Deny(reason=f"{member.name!a} is too large.", category="too_large")
    if member.packed and member.size > _RATIO_FROM and member.size > member.packed * MOST_RATIO:
        return Deny(
            reason=f"{member.name!a} has a suspicious compression ratio.", category="too_large"
        )
    return None


def _refused_name(name: str) -> Deny | None:
    if why := why_unusable(name):
        return _deny(why)
    for reading in (name, *readings(name, "/~")):
        slashed = reading.replace("\\", "/")
        parts = [part.strip(" ") for part in slashed.split("/")]
        if slashed.startswith(("/", "~")) or _DRIVE.match(slashed):
            return _deny(f"{name!a} leaves the archive's folder.")
        if ".." in parts:
            return _deny(f"{name!a} points outside the archive's folder.")
        if any(part.rstrip(". ").lower() in lists().windows_devices for part in parts):
            return _deny(f"{name!a} is the name of a device.")
    return None


def _refused_link(member: Member) -> Deny | None:
    target = member.link.replace("\\", "/")
    if not target or why_unusable(target):
        return _deny(f"The link {member.name!a} has no target.")
    if target.startswith(("/", "~")) or _DRIVE.match(target):
        return _deny(f"The link {member.name!a} points outside the archive's folder.")
    # A hard link counts from the top of the archive, a symbolic one from its own folder.
    start = "" if member.kind == "hardlink" else posixpath.dirname(member.name)
    if posixpath.normpath(posixpath.join(start, target)).split("/")[0] == "..":
        return _deny(f"The link {member.name!a} points outside the archive's folder.")
    return None


def _deny(reason: str) -> Deny:
    return Deny(reason=reason, category="traversal")
