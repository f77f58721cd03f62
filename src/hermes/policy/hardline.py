"""What is never run, in no mode and by nobody's word: the end of the machine or of the home."""

from __future__ import annotations

import re

SYSTEM_ROOTS = frozenset(
    """
    / /bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin
    /srv /sys /usr /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib
    /Applications /Library /System /Users
    """.split()
)
DISK = re.compile(r"^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|md|loop)")
POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
POWER_UNITS = frozenset(
    ("poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency")
)
# For scripts that are more than plain: the same ends, looked for in the bare text.
IN_TEXT = (
    (
        r"\brm\s+(?:-\S+\s+)*-\w*[rR]\w*\s+(?:-\S+\s+)*[\"']?(?:/|~|\$\{?HOME\}?)[\"']?(?:\*|/\*|\s|;|$|\))",
        "deletes the system or the home",
    ),
    (r"\brm\s+[^;|&]*--no-preserve-root", "deletes the system"),
    (r"\bfind\s+(?:/|~|\$HOME)\s[^;|]*-delete", "deletes the system or the home"),
    (r"\bmkfs(?:\.\w+)?\s", "formats a disk"),
    (r"\bdd\b[^;|&]*\bof=/dev/(?:sd|hd|vd|nvme|mmcblk|disk)", "overwrites a disk"),
    (r">\s*/dev/(?:sd|hd|vd|nvme|mmcblk|disk)", "overwrites a disk"),
    (r"(\w+|:)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1\s*&", "is a fork bomb"),
    (
        r"(?:^|[;&|(`]|\becho|\bexec|\bsudo)\s*(?:shutdown|reboot|halt|poweroff)\b(?!\s*\()",
        "turns the machine off",
    ),
    (r"\binit\s+[06]\b", "turns the machine off"),
    (r"\bsystemctl\s+(?:\S+\s+)*(?:poweroff|reboot|halt)\b", "turns the machine off"),
    (r"\bkill\s+(?:-\w+\s+)*-1\b", "kills every process"),
)


def in_text(script: str) -> str:
    """Why a script that cannot be read plainly is never run, or nothing."""
    plain = re.sub(r"[\"'\\]", "", script)
    for text in (script, plain):
        for pattern, why in IN_TEXT:
            if re.search(pattern, text, re.MULTILINE):
                return f"it {why}"
    return ""


def in_command(words: tuple[str, ...], paths: tuple[str, ...], home: str) -> str:
    """Why this plain command is never run, or nothing. `paths` are its arguments as absolute
    paths, patterns included."""
    name, arguments = words[0], words[1:]
    if name == "rm" and _recursive(arguments):
        for path in paths:
            if _is_root(path, home):
                return f"it deletes {path} and all that is in it"
    if name == "find" and ({"-delete", "-exec", "-execdir"} & set(arguments)):
        acts = "-delete" in arguments or "rm" in arguments or "shred" in arguments
        if acts and any(_is_root(path, home) for path in paths[:1]):
            return f"it deletes below {paths[0]}"
    if name.startswith("mkfs") or name in ("wipefs", "fdisk", "parted", "sgdisk"):
        return "it formats or wipes a disk"
    if name == "dd" and any(DISK.match(each[3:]) for each in arguments if each.startswith("of=")):
        return "it overwrites a disk"
    if name in ("shred", "tee", "cp") and any(DISK.match(path) for path in paths):
        return "it overwrites a disk"
    if name in POWER or (name in ("init", "telinit") and {"0", "6"} & set(arguments)):
        return "it turns the machine off"
    if name == "systemctl" and POWER_UNITS & set(arguments):
        return "it turns the machine off"
    if name == "kill" and "-1" in arguments[1:]:
        return "it kills every process"
    return ""


def overwrites_disk(target: str) -> bool:
    return bool(DISK.match(target))


def _recursive(arguments: tuple[str, ...]) -> bool:
    for argument in arguments:
        if argument.startswith("--"):
            if len(argument) > 3 and "--recursive".startswith(argument):
                return True
        elif argument.startswith("-") and ("r" in argument or "R" in argument):
            return True
    return False


def _is_root(path: str, home: str) -> bool:
    bare = path.rstrip("/").removesuffix("/*").removesuffix("/.*").rstrip("/") or "/"
    return bare in SYSTEM_ROOTS or bare == home.rstrip("/")
