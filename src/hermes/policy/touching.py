"""What it means when a command reads, writes or deletes a path."""

from __future__ import annotations

import posixpath
import re

from hermes.policy.findings import Finding, Level
from hermes.policy.paths import HARMLESS_DEVICE, Paths, inside
from hermes.policy.shell.state import UNKNOWN

# Folders that a build, a test run or an installation makes again.
REGENERABLE = re.compile(
    r"""(?ix) ^( build | builds | dist | out | output | target | bin | obj | tmp | temp | cache
    | coverage | htmlcov | node_modules | bower_components | vendor | venv | \.venv | env
    | __pycache__ | .*\.egg-info | \.(next|nuxt|parcel-cache|turbo|gradle|tox|nox|eggs|cache
    | pytest_cache | mypy_cache | ruff_cache | hypothesis | terraform | dart_tool | svelte-kit
    | output | tmp | coverage | nyc_output | ipynb_checkpoints) | cmake-build-.* | _build | site
    | reports? | test-results | logs? | artifacts | generated | .*[-_.](build|out|tmp|cache) )$"""
)
# Folders whose loss a person would want to hear of first, when they lie at the top.
PRECIOUS = re.compile(
    r"""(?ix) ^( \.git | \.github | \.svn | \.hg | src | source | sources | lib | libs | app | apps
    | packages | pkg | internal | cmd | include | test | tests | spec | doc | docs | data
    | database | db | migrations | assets | public | config | scripts | notebooks )$"""
)
EVERYTHING = frozenset(("*", ".*", "**", "*.*", ".[!.]*", ".??*"))


def reading(paths: Paths, path: str) -> Finding | None:
    if UNKNOWN in path and not path.split(UNKNOWN)[0].rstrip("/"):
        return None
    if paths.place(path) == "disk" or path in ("/dev/mem", "/dev/kmem", "/dev/port"):
        return _finding(Level.ASKED, "disk", f"It reads all of {path}, whatever lies there.")
    if paths.own(path):
        return _finding(Level.DENIED, "own_state", f"{path} is part of Hermes' own state.")
    # A link inside the workspace may lead to a credential outside of it.
    for each in (path, _real(paths, path)):
        if why := paths.sensitive(each):
            return _finding(Level.ASKED, "credentials", why)
    return None


def writing(
    paths: Paths, path: str, *, append: bool = False, strayed: bool = False
) -> Finding | None:
    """For anything that changes, makes or replaces a file."""
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return _finding(Level.ASKED, "network_out", f"It opens a connection through {path}.")
    if HARMLESS_DEVICE.match(path):
        return None
    return _within(paths, path, _writing(paths, path, append=append, strayed=strayed))


def _within(paths: Paths, path: str, found: Finding) -> Finding:
    """Whatever it is otherwise, it is refused where nothing may be written."""
    if found.level < Level.DENIED and (why := paths.safe.refused(path)):
        return _finding(Level.DENIED, "settings", why)
    return found


def _writing(paths: Paths, path: str, *, append: bool, strayed: bool) -> Finding:
    if UNKNOWN in path and not _surely_here(paths, path):
        return _finding(
            Level.ASKED, "overwrite", "It writes a file whose name its text does not tell."
        )
    if strayed:
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    found = _written(paths, path, append) or _written(paths, _real(paths, path), append)
    if found is None and paths.places.told_to_agents(path):
        return _finding(Level.WORK, "agent_context", f"It changes {path}, which agents obey.")
    return found or _finding(Level.WORK, "", "It changes files of the workspace.")


def _written(paths: Paths, path: str, append: bool) -> Finding | None:
    place = paths.place(path)
    if place == "disk":
        return _finding(Level.NEVER, "disk", f"it overwrites the disk {path}")
    if path in ("/proc/sysrq-trigger", "/dev/mem", "/dev/kmem"):
        return _finding(Level.NEVER, "power", "it stops the machine at once")
    if place == "critical" and not append:
        return _finding(Level.NEVER, "system_config", f"it overwrites {path}")
    if place == "state":
        return _finding(Level.DENIED, "own_state", f"{path} is part of Hermes' own state.")
    if why := paths.starts_later(path):
        return _finding(Level.ASKED, "persistence", why)
    if why := paths.sensitive(path):
        return _finding(Level.ASKED, "credentials", why)
    if place in ("system", "critical"):
        return _finding(Level.ASKED, "system_config", f"It changes {path}, part of the system.")
    if place == "device":
        return _finding(Level.ASKED, "system_config", f"It writes to the device {path}.")
    if place in ("outside", "home"):
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    return None


def strays(paths: Paths, text: str, path: str) -> bool:
    """A relative path that climbs out of a workspace which itself lies among temporary files:
    what is beside it there is somebody's, not everybody's. And, where the workspace is the whole
    home, a path that is spelled from the home: it means the person's files, not those at hand."""
    from_home = text.startswith("~") or (text.startswith("/") and inside(text, paths.home))
    if paths.root == paths.home and from_home:
        return True
    relative = not text.startswith(("/", "~", UNKNOWN))
    return relative and inside(paths.root, "/tmp") and not inside(path, paths.root)


def deleting(paths: Paths, path: str, *, recursive: bool, strayed: bool = False) -> Finding:
    """`strayed` paths are nobody's temporary files; see `strays`."""
    return _within(paths, path, _deleting(paths, path, recursive=recursive, strayed=strayed))


def _deleting(paths: Paths, path: str, *, recursive: bool, strayed: bool) -> Finding:
    recursive = recursive or path.endswith("/**")
    if recursive and (paths.is_root(path) or paths.is_root(_real(paths, path))):
        return _finding(Level.NEVER, "delete", f"it deletes {path} and all that is in it")
    if UNKNOWN in path:
        return _finding(
            Level.ASKED, "delete", "It deletes something whose name its text does not tell."
        )
    place = "outside" if strayed else paths.place(path)
    if place == "critical":
        return _finding(Level.NEVER, "delete", f"it deletes {path}")
    if place == "state":
        return _finding(Level.DENIED, "own_state", f"{path} is part of Hermes' own state.")
    if paths.sensitive(path) or paths.starts_later(path):
        return _finding(Level.ASKED, "delete", f"It deletes {path}, which other programs need.")
    if place == "workspace":
        return _deleted_here(paths, path, recursive)
    if place == "scratch" and path.count("/") > 1 and posixpath.basename(path) not in EVERYTHING:
        return _finding(Level.WORK, "", "It deletes temporary files.")
    if place == "scratch" and path.count("/") > 2:
        return _finding(Level.WORK, "", "It deletes temporary files.")
    return _finding(Level.ASKED, "delete", f"It deletes {path}, outside the workspace.")


def _deleted_here(paths: Paths, path: str, recursive: bool) -> Finding:
    rest = posixpath.relpath(path, paths.root)
    top, _, below = rest.partition("/")
    work = _finding(Level.WORK, "", "It deletes files of the workspace.")
    all_of_it = top in EVERYTHING and (not below or below in EVERYTHING)
    if rest == "." or (all_of_it and recursive):
        return _finding(Level.ASKED, "delete", "It deletes the whole workspace.")
    if top == ".git":
        return _finding(Level.ASKED, "delete", "It deletes the history that git keeps.")
    if not recursive or REGENERABLE.match(top):
        return work
    wide = not below or below in EVERYTHING
    if wide and (PRECIOUS.match(top) or paths.root == paths.home):
        return _finding(Level.ASKED, "delete", f"It deletes {path} and all that is in it.")
    return work


def _surely_here(paths: Paths, path: str) -> bool:
    """An unknown part is only the end of a name that lies in the workspace."""
    known = path.split(UNKNOWN)[0]
    folder = known if known.endswith("/") else posixpath.dirname(known)
    return paths.place(posixpath.normpath(folder or "/")) in ("workspace", "scratch")


def _real(paths: Paths, path: str) -> str:
    fixed = UNKNOWN in path or "\0" in path or path.startswith(("/dev/", "/proc/"))
    return path if fixed else paths.real(path)


def _finding(level: Level, category: str, reason: str) -> Finding:
    return Finding(level=level, category=category, reason=reason)
