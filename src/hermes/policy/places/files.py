"""Decides about the paths that tools, messages, attachments and archives name. A path that can be
read in several ways is checked in each."""

from __future__ import annotations

import os.path
import posixpath
import time
from collections.abc import Callable, Iterable
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.findings import Finding, combine, decision_of
from hermes.policy.path_effects import Paths, judge_delete, judge_read, judge_write
from hermes.policy.patterns import regex
from hermes.policy.places.links import describe_special
from hermes.policy.places.places import SafeRoots, lists
from hermes.policy.places.spelling import absolute_paths, readings, why_unusable

MEDIA = ("MEDIA:", "media:")


class Files:
    """File rules for one workspace. Nothing is opened. Links are followed by name, but not those
    of a `remote` machine. `safe` holds the only folders in which anything may be written."""

    def __init__(
        self,
        root: str,
        home: str,
        state: str,
        now: Callable[[], float] = time.monotonic,
        *,
        remote: bool = False,
        safe: SafeRoots | None = None,
    ) -> None:
        self._remote = remote
        real_root = root if remote else os.path.realpath(root)
        self._paths = Paths(
            real_root,
            home,
            os.path.realpath(state),
            remote=remote,
            safe=safe or SafeRoots(),
            now=now,
        )
        self.places = self._paths.places

    def read(self, text: str, cwd: str = "") -> Decision:
        """Decide about reading. `text` is a path as a person or model writes it, relative to `cwd`
        or the root."""
        _, paths, refused = self._readings(text, cwd)
        return refused or _decide(judge_read(self._paths, path) for path in paths)

    def write(self, text: str, cwd: str = "") -> Decision:
        """Decide about a tool that creates, changes or moves a file."""
        _, paths, refused = self._readings(text, cwd)
        return refused or _decide(judge_write(self._paths, path) for path in paths)

    def delete(self, text: str, cwd: str = "") -> Decision:
        real, paths, refused = self._readings(text, cwd)
        if refused:
            return refused
        folder = not self._remote and os.path.isdir(real)  # noqa: PTH112
        return _decide(judge_delete(self._paths, path, recursive=folder) for path in paths)

    def attach(self, text: str, cwd: str = "") -> Decision:
        """Decide about a file that is sent. Files from outside the workspace need approval."""
        for prefix in MEDIA:
            text = text.strip().removeprefix(prefix).strip("\"'` ")
        real, paths, refused = self._readings(text, cwd)
        if refused := refused or self._private(paths):
            return refused
        known = (self.places.in_workspace(path) or self.places.is_scratch(path) for path in paths)
        if all(known) or self.places.is_outgoing_media(real):
            return Allow()
        reason = f"{real} is outside the workspace and would be sent."
        return Ask(reason=reason, category="outside", scopes=("once",))

    def refer(self, text: str, cwd: str = "") -> Decision:
        """Decide about a file that a message refers to with `@`. It must lie in the workspace."""
        real, paths, refused = self._readings(text, cwd)
        if refused := refused or self._private(paths):
            return refused
        if not all(self.places.in_workspace(path) for path in paths):
            reason = f"{real} is outside the allowed workspace."
            return Deny(reason=reason, category="outside")
        return Allow(harmless=True)

    def refer_all(self, message: str, cwd: str = "") -> Decision:
        """Return the strictest decision about the files that a message refers to. References to
        URLs are checked where they are fetched."""
        for reference in references(message):
            if reference.kind in ("file", "folder"):
                decision = self.refer(reference.target, cwd)
                if isinstance(decision, Deny):
                    return decision
        return Allow(harmless=True)

    def unpack(self, member: Member, folder: str = "") -> Decision:
        """Whether a member of an archive may be unpacked into a folder of the workspace."""
        if refused := _refused_size(member) or _refused_name(member.name):
            return refused
        if member.kind in ("device", "pipe", "socket"):
            return _deny(f"{member.name!a} is a {member.kind}, not a file.")
        if member.mode & _SET_ID and member.kind == "file":
            return _deny(f"{member.name!a} would run with another user's privileges.")
        if member.kind in ("symlink", "hardlink") and (refused := _refused_link(member)):
            return refused
        return self.write(posixpath.join(folder, member.name))

    def _readings(self, text: str, cwd: str) -> tuple[str, tuple[str, ...], Deny | None]:
        """Return the path with links followed, every path that the text may name, and the refusal
        if it cannot name a file."""
        if why := why_unusable(text):
            return "", (), Deny(reason=why, category="unclear")
        follow = not self._remote
        base = posixpath.join(self.places.root, cwd) if cwd else self.places.root
        base = os.path.realpath(base) if cwd and follow else base
        plain, *others = (
            absolute_paths(reading, base, follow=follow)
            for reading in readings(text, self.places.home)
        )
        real = plain[1] if len(plain) > 1 else plain[0]
        paths = (*plain, *(path for other in others for path in other))
        what = next((what for path in paths if (what := self.places.not_a_file(path))), "")
        if what := what or (describe_special(real) if follow else ""):
            return real, paths, Deny(reason=f"{real} is {what}, not a file.", category="device")
        return real, paths, None

    def _private(self, paths: tuple[str, ...]) -> Deny | None:
        """Refuse what may be read after approval but never attached or referred to."""
        for path in paths:
            reading = judge_read(self._paths, path)
            if reading is not None and reading.category != "outside":
                return Deny(reason=reading.reason, category=reading.category)
            if self.places.is_shell_file(path):
                reason = f"{path} is a shell start file, which often contains secrets."
                return Deny(reason=reason, category="credentials")
        return None


def _decide(findings: Iterable[Finding | None]) -> Decision:
    return decision_of(combine(each for each in findings if each is not None))


_REFERENCE = regex(
    r"""(?ix) (?<![\w/@]) @
    (?: (?P<kind>file|folder|dir|url|git|image|media) :\s? )?
    (?: "(?P<double>[^"]+)" | '(?P<single>[^']+)' | `(?P<tick>[^`]+)` | (?P<bare>[^\s"'`]+) )
    """
)
_LINES = regex(r"(?::\d+(?:-\d+|:\d+)?|\#L\d+(?:-L?\d+)?)$")
_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}
WORDS = frozenset(("diff", "staged"))


class Reference(Value):
    """An `@` reference in a message."""

    kind: str
    target: str


def references(message: str) -> tuple[Reference, ...]:
    """Find the `@` references in a message."""
    found: list[Reference] = []
    for match in _REFERENCE.finditer(message):
        quoted = match["double"] or match["single"] or match["tick"]
        kind = (match["kind"] or "").lower()
        target = quoted or _trim(match["bare"])
        if not target:
            continue
        if not kind and target in WORDS:
            found.append(Reference(kind=target, target=""))
            continue
        if kind not in ("url", "git"):
            # A name may end in what looks like a line number, so both are checked.
            target_without = _LINES.sub("", target)
            if target_without and target_without != target:
                found.append(Reference(kind="file", target=target_without))
        shown = {"dir": "folder", "image": "file", "media": "file", "": "file"}.get(kind, kind)
        found.append(Reference(kind=shown, target=target))
    return tuple(found)


def _trim(target: str) -> str:
    """Return the reference without closing punctuation."""
    while target:
        last = target[-1]
        ends = last in ",.;!?" and not target.endswith("..")
        closes = last in _CLOSERS and target.count(last) > target.count(_CLOSERS[last])
        if not (ends or closes):
            break
        target = target[:-1]
    return target


MOST_BYTES = 1024 * 1024 * 1024
MOST_RATIO = 200
# Below this a high ratio is only a file of zeros.
_RATIO_FROM = 16 * 1024 * 1024
_DRIVE = regex(r"^[A-Za-z]:")
_SET_ID = 0o6000

MemberKind = Literal["file", "folder", "symlink", "hardlink", "device", "pipe", "socket"]


class Member(Value):
    """One entry of an archive. `link` is where a link leads; `packed` the size in the archive."""

    name: str
    kind: MemberKind = "file"
    link: str = ""
    size: int = 0
    packed: int = 0
    mode: int = 0


def parse_member(raw: JsonObject) -> Member:
    """Make a member from loose fields, as a listing gives them; raise DecodeError. A name of the
    form `a -> b` is a symbolic link, as `tar` and `unzip` list them."""
    fields: JsonObject = {
        name: raw[name] for name in ("kind", "link", "size", "packed", "mode") if name in raw
    }
    name = str(raw.get("value", raw.get("name", "")))
    if "link" not in fields and " -> " in name:
        name, _, fields["link"] = name.partition(" -> ")
    if "link" in fields:
        fields.setdefault("kind", "symlink")
    return convert(Member, {"name": name, **fields})


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
