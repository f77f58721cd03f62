"""Which paths are whose business: secrets, the system, the agent's own state, the workspace."""

from __future__ import annotations

import os.path
import posixpath
import re
from fnmatch import fnmatchcase
from typing import Literal

from hermes.core.effects import Allow, Ask, Decision, Deny

Place = Literal[
    "workspace", "scratch", "outside", "system", "critical", "device", "disk", "state", "home"
]

CREDENTIAL_FOLDERS = (
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gh",
    ".config/gcloud",
    ".config/hub",
    ".config/glab-cli",
    ".config/op",
    ".config/rclone",
    ".config/doctl",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/sops",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".password-store",
    ".terraform.d",
    "Library/Keychains",
    "Library/Messages",
    "Library/Mail",
    "Library/Safari",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
)
CREDENTIAL_FILES = (
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".vault-token",
    ".s3cfg",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
)
START_FILES = (
    ".bashrc",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zlogin",
    ".profile",
    ".bash_profile",
    ".zprofile",
    ".zshenv",
    ".bash_login",
    ".xprofile",
    ".xinitrc",
    ".inputrc",
    ".vimrc",
    ".gitconfig",
    ".config/git/config",
    ".pam_environment",
)
START_FOLDERS = (
    ".config/systemd",
    ".config/autostart",
    ".config/fish",
    ".config/nvim",
    ".local/bin",
    "bin",
    ".vim",
    ".local/share/systemd",
    "Library/LaunchAgents",
)
SYSTEM_FOLDERS = (
    "/etc",
    "/boot",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sys",
    "/proc",
    "/dev",
    "/System",
    "/Library",
)
SYSTEM_START = re.compile(
    r"^/etc/(cron|systemd|init|rc\.|profile|bash\.bashrc|ld\.so|sudoers|pam\.d|xdg/autostart)"
    r"|^/var/spool/cron|^/(usr/)?lib/systemd|^/Library/Launch"
)
CRITICAL = frozenset(
    ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers", "/etc/fstab")
)
# Deleting one of these, or all that is in it, is the end of the machine or of the home.
ROOTS = frozenset(
    """
    / /bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin
    /srv /sys /usr /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib
    /Applications /Library /System /Users
    """.split()
)
HOMES = re.compile(r"^(/home/[^/]+|/root|/Users/[^/]+)(?=/|$)")
DISK = re.compile(r"^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|zd|nbd|sr\d)")
HARMLESS_DEVICE = re.compile(r"^/dev/(null|zero|full|u?random|std(in|out|err)|tty|fd/\d+|ptmx?)$")
ENV_FILE = re.compile(r"^\.env(rc|\.(local|development|production|test|staging|prod|dev))?$")
KEY_FILE = re.compile(r"^id_(rsa|dsa|ecdsa|ed25519)(_\w+)?$|\.(kdbx|p12|pfx|keystore|jks)$")
PROCESS_SECRETS = re.compile(r"^/proc/[^/]+/(environ|mem|fd/|root/|maps)")
RESERVED = re.compile(r"(^|/)\.git/(hooks(/|$)|config$)|(^|/)\.envrc$")
SYSTEM_SECRETS = frozenset(
    ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/krb5.keytab", "/etc/master.passwd")
)
SECRET_FOLDERS = ("/run/secrets", "/var/run/secrets", "/etc/ssl/private", "/etc/letsencrypt")
OWN_ROOT = re.compile(r"^/proc/[^/]+/root(?=/|$)")
GLOB = re.compile(r"[*?\[]")


def clean(path: str) -> str:
    """An absolute path without `.`, `..`, doubled slashes and other spellings of the root."""
    path = posixpath.normpath("/" + path.lstrip("/"))
    return OWN_ROOT.sub("", path) or "/"


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Paths:
    """Judges absolute, resolved paths. `state` is the agent's own home. Those of a `far` machine
    are not looked up on this one."""

    def __init__(self, root: str, home: str, state: str, *, far: bool = False) -> None:
        self.root = root.rstrip("/") or "/"
        self.home = home.rstrip("/") or "/"
        self._state = state.rstrip("/")
        self._far = far

    def real(self, path: str) -> str:
        """Where the path leads; itself where nobody can tell."""
        return path if self._far else os.path.realpath(path)

    def exists(self, path: str, *, unknown: bool) -> bool:
        return unknown if self._far else os.path.lexists(path)

    def read(self, path: str) -> Decision:
        if why := self._secret(path):
            return Deny(reason=why, category="credentials")
        if why := self.sensitive(path):
            return Ask(reason=why, category="credentials", scopes=("once",))
        return Allow(harmless=True)

    def write(self, path: str) -> Decision:
        if why := self.sensitive(path):
            return Deny(reason=why, category="credentials")
        if inside(path, self._state):
            return Deny(reason=f"{path} is part of Hermes' own state.", category="own_state")
        here = self.holds(path)
        if not here and any(inside(path, folder) for folder in SYSTEM_FOLDERS):
            return Deny(reason=f"{path} belongs to the system.", category="system_config")
        if why := self.starts_later(path):
            return Ask(reason=why, category="persistence")
        if here:
            return Allow()
        return Ask(reason=f"{path} is outside the workspace {self.root}.", category="overwrite")

    def holds(self, path: str) -> bool:
        """Part of the workspace. One as wide as the machine does not hold its other roots."""
        if not inside(path, self.root):
            return False
        if self.root not in ROOTS:
            return True
        return not any(inside(path, each) for each in ROOTS if each not in ("/", self.root))

    def place(self, path: str) -> Place:
        """Whose an absolute path is. Patterns count as what stands before them."""
        if path.startswith("/dev/"):
            return "disk" if DISK.match(path) else "device"
        if inside(path, self._state):
            return "state"
        if path in CRITICAL:
            return "critical"
        if self.holds(path):
            return "workspace"
        if any(inside(path, folder) for folder in SYSTEM_FOLDERS):
            return "system"
        if inside(path, self.home):
            return "home"
        return "scratch" if inside(path, "/tmp") or inside(path, "/var/tmp") else "outside"

    def starts_later(self, path: str) -> str:
        """Why a file is run or read by other programs later, or nothing."""
        rest = self._in_home(path)
        if rest and (rest in START_FILES or any(inside(rest, each) for each in START_FOLDERS)):
            return f"{path} is run or read by programs that start later."
        if SYSTEM_START.match(path) or (
            "/site-packages/" in path and path.endswith("customize.py")
        ):
            return f"{path} is run or read by programs that start later."
        if RESERVED.search(path):
            return f"{path} is run or read by other programs later."
        return ""

    def is_root(self, path: str) -> bool:
        """The system, the home, all homes, or everything in one of these."""
        bare = path
        while (head := posixpath.dirname(bare)) != bare and posixpath.basename(bare) in (
            "*",
            ".*",
            "**",
            ".[!.]*",
            ".??*",
            "{*,.*}",
        ):
            bare = head
        if bare in ROOTS or bare == self.home or HOMES.fullmatch(bare):
            return True
        if GLOB.search(bare):
            return any(_same(root, bare) for root in (*ROOTS, self.home))
        return False

    def covers(self, path: str) -> bool:
        """A folder so wide that credentials lie somewhere in it."""
        return (
            inside(self.home, path)
            or path in (f"{self.home}/.config", f"{self.home}/Library", "/etc")
            or bool(HOMES.fullmatch(path))
        ) and not inside(path, self.root)

    def sensitive(self, path: str) -> str:
        """Why reading this path needs a person's word, or nothing."""
        rest = self._in_home(path)
        if rest and (
            rest in CREDENTIAL_FILES or any(inside(rest, folder) for folder in CREDENTIAL_FOLDERS)
        ):
            return f"{path} holds credentials."
        if path in SYSTEM_SECRETS or any(inside(path, each) for each in SECRET_FOLDERS):
            return f"{path} holds the system's secrets."
        if KEY_FILE.search(posixpath.basename(path)):
            return f"{path} is a private key."
        return self._secret(path) or self._may_match(path)

    def own(self, path: str) -> bool:
        """Part of what Hermes keeps for itself; what tools keep for a session may be read."""
        return inside(path, self._state) and not inside(path, f"{self._state}/sessions")

    def _in_home(self, path: str) -> str:
        """The path below a home folder, this person's or another's."""
        if path.startswith(self.home + "/"):
            return path[len(self.home) + 1 :]
        found = HOMES.match(path)
        return path[found.end() + 1 :] if found else ""

    def _may_match(self, pattern: str) -> str:
        """A pattern that could stand for a credential counts as one."""
        if not GLOB.search(pattern):
            return ""
        stores = (f"{self.home}/{name}" for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES))
        name = posixpath.basename(pattern)
        if any(_touches(store, pattern) for store in stores) or (
            name.startswith((".", "?", "[")) and fnmatchcase(".env", name)
        ):
            return f"{pattern} may stand for credentials."
        return ""

    def _secret(self, path: str) -> str:
        name = posixpath.basename(path)
        if ENV_FILE.match(name):
            return f"{path} holds secrets; use an example file such as .env.example."
        if self.own(path):
            # Settings, credentials and the journal.
            return f"{path} is part of Hermes' own state."
        if PROCESS_SECRETS.match(path):
            return f"{path} shows another process's memory or environment."
        return ""


def _touches(store: str, pattern: str) -> bool:
    """The pattern stands for the store, for something in it, or for a folder around it."""
    pairs = zip(store.split("/"), pattern.split("/"), strict=False)
    return all(_component(name, part) for name, part in pairs)


def _same(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and _touches(path, pattern)


def _component(name: str, pattern: str) -> bool:
    # A shell's `*` leaves out what begins with a dot.
    return fnmatchcase(name, pattern) and not (name[:1] == "." and pattern[:1] != ".")
