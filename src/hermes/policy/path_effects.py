"""Judges what reading, writing or deleting a path means, for file tools and for commands alike."""

from __future__ import annotations

import posixpath

from hermes.policy.findings import Finding, Level
from hermes.policy.paths import HARMLESS_DEVICE, Paths, is_inside
from hermes.policy.patterns import regex
from hermes.policy.shell.state import UNKNOWN

# Folders that a build, a test run or an installation makes again.
REGENERABLE = regex(
    r"""(?ix) ^( build | builds | dist | out | output | target | bin | obj | tmp | temp | cache
    | coverage | htmlcov | node_modules | bower_components | vendor | venv | \.venv | env
    | __pycache__ | .*\.egg-info | \.(next|nuxt|parcel-cache|turbo|gradle|tox|nox|eggs|cache
    | pytest_cache | mypy_cache | ruff_cache | hypothesis | terraform | dart_tool | svelte-kit
    | output | tmp | coverage | nyc_output | ipynb_checkpoints) | cmake-build-.* | _build | site
    | reports? | test-results | logs? | artifacts | generated | .*[-_.](build|out|tmp|cache) )$"""
)
# Top-level folders of a project whose deletion needs confirmation.
PRECIOUS = regex(
    r"""(?ix) ^( \.git | \.github | \.svn | \.hg | src | source | sources | lib | libs | app | apps
    | packages | pkg | internal | cmd | include | test | tests | spec | doc | docs | data
    | database | db | migrations | assets | public | config | scripts | notebooks )$"""
)
EVERYTHING = frozenset(("*", ".*", "**", "*.*", ".[!.]*", ".??*"))


def judge_read(paths: Paths, path: str) -> Finding | None:
    """None when reading the absolute path is harmless."""
    if UNKNOWN in path and not path.split(UNKNOWN)[0].rstrip("/"):
        return None
    if paths.place(path) == "disk" or path in ("/dev/mem", "/dev/kmem", "/dev/port"):
        return _finding(Level.ASKED, "disk", f"It reads the raw device {path}.")
    for each in _names(paths, path):
        if paths.is_own_state(each):
            return _own_state(each)
        if why := paths.why_sensitive(each):
            return _finding(Level.ASKED, "credentials", why)
        if paths.of_another_person(each):
            return _finding(Level.ASKED, "outside", f"{each} belongs to another person.")
    if other := paths.twin(path):
        if paths.is_own_state(other):
            return _own_state(other)
        return _finding(Level.ASKED, "credentials", f"{path} is a hard link to {other}.")
    return None


def judge_write(
    paths: Paths, path: str, *, append: bool = False, from_home: bool = False
) -> Finding | None:
    """For everything that creates, changes or replaces a file; None for harmless devices.
    `from_home`: see `spelled_from_home`."""
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return _finding(Level.ASKED, "network_out", f"It opens a connection through {path}.")
    if HARMLESS_DEVICE.match(path):
        return None
    return _within_safe_roots(paths, path, _write(paths, path, append, from_home))


def judge_delete(
    paths: Paths, path: str, *, recursive: bool = False, from_home: bool = False
) -> Finding:
    return _within_safe_roots(paths, path, _delete(paths, path, recursive, from_home))


def spelled_from_home(paths: Paths, text: str) -> bool:
    """Whether a command spells a path from the home while the workspace is the whole home. It then
    means one of the person's files, not a file of the work in hand. Tools resolve their paths
    first, so the spelling says nothing there."""
    if paths.root != paths.home:
        return False
    return text.startswith("~") or (text.startswith("/") and is_inside(text, paths.home))


def _within_safe_roots(paths: Paths, path: str, found: Finding) -> Finding:
    if found.level < Level.DENIED and (why := paths.safe.refused(path)):
        return _finding(Level.DENIED, "settings", why)
    return found


def _write(paths: Paths, path: str, append: bool, from_home: bool) -> Finding:
    if UNKNOWN in path and not _surely_here(paths, path):
        reason = "It writes a file whose name is only known when it runs."
        return _finding(Level.ASKED, "overwrite", reason)
    if from_home:
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    for each in _names(paths, path):
        if found := _write_one(paths, each, append):
            return found
    if other := paths.twin(path):
        if paths.is_own_state(other):
            return _own_state(other)
        return _finding(Level.ASKED, "credentials", f"{path} is a hard link to {other}.")
    if paths.places.is_agent_file(path):
        return _finding(Level.WORK, "agent_context", f"It changes {path}, which agents obey.")
    return _finding(Level.WORK, "", "It changes files of the workspace.")


def _write_one(paths: Paths, path: str, append: bool) -> Finding | None:
    place = paths.place(path)
    if place == "disk":
        return _finding(Level.NEVER, "disk", f"it overwrites the disk {path}")
    if path in ("/proc/sysrq-trigger", "/dev/mem", "/dev/kmem"):
        return _finding(Level.NEVER, "power", "it stops the machine at once")
    if place == "critical" and not append:
        return _finding(Level.NEVER, "system_config", f"it overwrites {path}")
    if place == "state":
        return _own_state(path)
    if why := paths.why_runs_later(path):
        return _finding(Level.ASKED, "persistence", why)
    if why := paths.why_sensitive(path):
        return _finding(Level.ASKED, "credentials", why)
    if place in ("system", "critical"):
        return _finding(Level.ASKED, "system_config", f"It changes {path}, part of the system.")
    if place == "device":
        return _finding(Level.ASKED, "system_config", f"It writes to the device {path}.")
    if place in ("outside", "home"):
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    return None


def _delete(paths: Paths, path: str, recursive: bool, from_home: bool) -> Finding:
    recursive = recursive or path.endswith("/**")
    if recursive and any(map(paths.is_root, _names(paths, path))):
        return _finding(Level.NEVER, "delete", f"it deletes {path} and all that is in it")
    if UNKNOWN in path:
        reason = "It deletes something whose name is only known when it runs."
        return _finding(Level.ASKED, "delete", reason)
    place = "outside" if from_home else paths.place(path)
    if place == "critical":
        return _finding(Level.NEVER, "delete", f"it deletes {path}")
    if place == "state":
        return _own_state(path)
    if paths.why_sensitive(path) or paths.why_runs_later(path):
        return _finding(Level.ASKED, "delete", f"It deletes {path}, which other programs need.")
    if place == "workspace":
        return _delete_in_workspace(paths, path, recursive)
    name, depth = posixpath.basename(path), path.count("/")
    if place == "scratch" and (depth > 2 or (depth > 1 and name not in EVERYTHING)):
        return _finding(Level.WORK, "", "It deletes temporary files.")
    return _finding(Level.ASKED, "delete", f"It deletes {path}, outside the workspace.")


def _delete_in_workspace(paths: Paths, path: str, recursive: bool) -> Finding:
    rest = posixpath.relpath(path, paths.root)
    top, _, below = rest.partition("/")
    all_of_it = top in EVERYTHING and (not below or below in EVERYTHING)
    if rest == "." or (all_of_it and recursive):
        return _finding(Level.ASKED, "delete", "It deletes the whole workspace.")
    if top == ".git":
        return _finding(Level.ASKED, "delete", "It deletes the history that git keeps.")
    wide = recursive and not REGENERABLE.match(top) and (not below or below in EVERYTHING)
    if wide and (PRECIOUS.match(top) or paths.root == paths.home):
        return _finding(Level.ASKED, "delete", f"It deletes {path} and all that is in it.")
    return _finding(Level.WORK, "", "It deletes files of the workspace.")


def _surely_here(paths: Paths, path: str) -> bool:
    """Whether the unknown part is only the end of a name in the workspace."""
    known = path.split(UNKNOWN)[0]
    folder = known if known.endswith("/") else posixpath.dirname(known)
    return paths.place(posixpath.normpath(folder or "/")) in ("workspace", "scratch")


def _names(paths: Paths, path: str) -> tuple[str, ...]:
    """The path, and where its links lead: a link in the workspace may lead to a credential."""
    if UNKNOWN in path or "\0" in path or path.startswith(("/dev/", "/proc/")):
        return (path,)
    real = paths.real(path)
    return (path,) if real == path else (path, real)


def _own_state(path: str) -> Finding:
    return _finding(Level.DENIED, "own_state", f"{path} is part of Hermes' own state.")


def _finding(level: Level, category: str, reason: str) -> Finding:
    return Finding(level=level, category=category, reason=reason)
