"""Reads a name or path as it is written and as other programs might read the same text."""

from __future__ import annotations

import os.path
import posixpath
import unicodedata
from urllib.parse import unquote

from hermes.policy.patterns import regex

# Letters of other scripts that look like these.
LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмпгтвьАВЕКМНОРСТХІЅЈαορνικτυχβ" + "ⅼⅿⅾⅽⅰⅴⅹℓ‐‑‒–—−⁄∕‚‘’",
    "aeopcyxijsdghkmnrtbbABEKMHOPCTXISJaopviktuxb" + "lmdcivxl------//,''",
)
# Invisible characters that a shell reads, and characters that change the text direction.
HIDDEN = regex(
    "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffc\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def fold_lookalikes(name: str) -> str:
    """Return the ASCII name that this one looks like; usually itself."""
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKC", HIDDEN.sub("", name)).translate(LOOKALIKES)
    return plain if plain.isascii() else name


def why_disguised(script: str) -> str:
    """Return why the text differs from what a person sees, or ""."""
    if CONTROL.search(script):
        return "It contains control characters, which can hide what it does."
    if not script.isascii() and HIDDEN.search(script):
        return "It contains invisible characters, which can hide what it does."
    return ""


_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_FILE_URI = regex(r"(?i)^file:(?://(?:localhost|127\.0\.0\.1)?(?=/|[a-z]:))?")
_FOREIGN_URI = regex(r"(?i)^file://(?!/|(?:localhost|127\.0\.0\.1)?/|[a-z]:)")
# Two backslashes begin the name of another machine, unless what follows says otherwise.
_OTHER_MACHINE = regex(r"^(?:\\\\|/\\|\\/)(?![?][\\/])")
_DRIVE = regex(r"(?i)^(?://[?.]/|/(?=[a-z]:/))?[a-z]:(?=/|$)")
_ESCAPED = regex(r"%[0-9a-fA-F]{2}")
_HOME_VARIABLE = regex(
    r"(?i)\$\{?HOME\}?|%USERPROFILE%|%HOMEPATH%|%HOMEDRIVE%|\$env:(?:USERPROFILE|HOME)"
)
_APPDATA = (
    (regex(r"(?i)%APPDATA%|\$env:APPDATA"), "AppData/Roaming"),
    (regex(r"(?i)%LOCALAPPDATA%|\$env:LOCALAPPDATA"), "AppData/Local"),
)
_STREAM = regex(r"(?i):(?::?\$[a-z_]+|[^/:]*:\$[a-z_]+)$")
_SHORT_NAME = regex(r"(?i)^(git|ssh|aws|env|gnupg|kube|docker|netrc|bashrc|bash_h)~\d$")
# `root` and `cwd` of a process lead back into the file system.
_PROC_ROOT = regex(r"^/proc/(?:self|thread-self|\d+|\*)(?:/task/[^/]+)?/root(?=/|$)")
_PROC_CWD = regex(r"^/proc/(?:self|thread-self)(?:/task/[^/]+)?/cwd(?=/|$)")


def why_unusable(text: str) -> str:
    """Return why the text cannot name a file, or ""."""
    if not text.strip():
        return "No path is given."
    if found := _CONTROL.search(text):
        return f"The path contains {found[0]!a}, which is not allowed in names."
    if _FOREIGN_URI.match(text) or _OTHER_MACHINE.match(text):
        return "The path is on another machine or is a device."
    return ""


def readings(text: str, home: str) -> tuple[str, ...]:
    """Return the path as it is written, then as a lenient program could read it, if that
    differs."""
    plain = _expand_home(text, home)
    lenient = text
    for _ in range(3):
        before = lenient
        lenient = unicodedata.normalize("NFKC", HIDDEN.sub("", lenient)).translate(LOOKALIKES)
        lenient = _FILE_URI.sub("", lenient)
        if _ESCAPED.search(lenient):
            lenient = unquote(lenient, errors="replace")
        if lenient == before:
            break
    lenient = _CONTROL.sub("", lenient)
    lenient = _HOME_VARIABLE.sub("~", lenient)
    for variable, folder in _APPDATA:
        lenient = variable.sub(f"~/{folder}", lenient)
    lenient = lenient.replace("\\", "/")
    lenient = _DRIVE.sub("", lenient)
    parts = [_lenient_component(part) for part in lenient.split("/")]
    lenient = _expand_home("/".join(parts), home)
    return (plain,) if lenient == plain else (plain, lenient)


def _lenient_component(part: str) -> str:
    part = _STREAM.sub("", part)
    if part.strip(". "):
        part = part.rstrip(". ").lstrip(" ")
    if found := _SHORT_NAME.match(part):
        return "." + found[1]
    return part


def _expand_home(text: str, home: str) -> str:
    text = _FILE_URI.sub("", text) if text[:5].lower() == "file:" else text
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    if text.startswith("~") and "/" in text:
        name, _, rest = text[1:].partition("/")
        other = "/root" if name == "root" else posixpath.join(posixpath.dirname(home), name)
        return f"{other}/{rest}"
    return text


def absolute_paths(text: str, cwd: str, *, follow: bool = True) -> tuple[str, ...]:
    """Return the absolute path by name, and with links followed."""
    joined = posixpath.join(cwd, text)
    by_name = remove_detours(posixpath.normpath(joined), cwd)
    if not follow:
        return (by_name,)
    return tuple(dict.fromkeys((by_name, real_path(joined), real_path(by_name))))


def remove_detours(path: str, cwd: str) -> str:
    """Return the path without doubled slashes and detours through /proc."""
    path = "/" + path.lstrip("/")
    for _ in range(8):
        shorter = posixpath.normpath(_PROC_CWD.sub(cwd, _PROC_ROOT.sub("", path)) or "/")
        if shorter == path:
            break
        path = shorter
    return "/" + path.lstrip("/")


def real_path(path: str) -> str:
    """Return the path with links followed, or as it is written where a link cannot be read."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return posixpath.normpath(path)
