"""Which paths are whose business: secrets, the system, the agent's own state, the workspace."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from hermes.core.effects import Allow, Ask, Decision, Deny

CREDENTIAL_FOLDERS = (
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gh",
    ".config/gcloud",
    ".password-store",
)
CREDENTIAL_FILES = (".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials")
START_FILES = (
    ".bashrc",
    ".zshrc",
    ".profile",
    ".bash_profile",
    ".zprofile",
    ".zshenv",
    ".bash_login",
)
SYSTEM_FOLDERS = (
    "/etc",
    "/boot",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/sys",
    "/proc",
    "/dev",
)
ENV_FILE = re.compile(r"^\.env(rc|\.(local|development|production|test|staging))?$")
PROCESS_SECRETS = re.compile(r"^/proc/[^/]+/(environ|mem|fd/|root/)")
RESERVED = re.compile(r"(^|/)\.git/(hooks/|config$)|(^|/)\.envrc$")


class Paths:
    """Judges absolute, resolved paths. `state` is the agent's own home."""

    def __init__(self, root: str, home: str, state: str) -> None:
        self._root = root.rstrip("/")
        self._home = home.rstrip("/")
        self._state = state.rstrip("/")

    def read(self, path: str) -> Decision:
        if why := self._secret(path):
            return Deny(reason=why, category="credentials")
        if why := self.sensitive(path):
            return Ask(reason=why, category="credentials", scopes=("once",))
        return Allow(harmless=True)

    def write(self, path: str) -> Decision:
        if why := self.sensitive(path):
            return Deny(reason=why, category="credentials")
        if _inside(path, self._state):
            return Deny(reason=f"{path} is part of Hermes' own state.", category="own state")
        if any(_inside(path, folder) for folder in SYSTEM_FOLDERS):
            return Deny(reason=f"{path} belongs to the system.", category="system")
        if path in (f"{self._home}/{name}" for name in START_FILES):
            return Ask(reason=f"{path} is run by every new shell.", category="persistence")
        if RESERVED.search(path):
            return Ask(
                reason=f"{path} is run or read by other programs later.", category="persistence"
            )
        if _inside(path, self._root):
            return Allow()
        return Ask(
            reason=f"{path} is outside the workspace {self._root or '/'}.", category="outside"
        )

    def sensitive(self, path: str) -> str:
        """Why reading this path needs a person's word, or nothing."""
        for folder in CREDENTIAL_FOLDERS:
            if _inside(path, f"{self._home}/{folder}"):
                return f"{path} holds credentials."
        if path in (f"{self._home}/{name}" for name in CREDENTIAL_FILES):
            return f"{path} holds credentials."
        if path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"):
            return f"{path} holds the system's secrets."
        return self._secret(path) or self._may_match(path)

    def _may_match(self, pattern: str) -> str:
        """A pattern that could stand for a credential counts as one."""
        fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        if fixed == pattern:
            return ""
        stores = (f"{self._home}/{name}" for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES))
        name = PurePosixPath(pattern).name
        if any(store.startswith(fixed) for store in stores) or (
            name.startswith((".", "?", "[")) and fnmatchcase(".env", name)
        ):
            return f"{pattern} may stand for credentials."
        return ""

    def _secret(self, path: str) -> str:
        name = PurePosixPath(path).name
        if ENV_FILE.match(name):
            return f"{path} holds secrets; use an example file such as .env.example."
        if _inside(path, self._state) and not _inside(path, f"{self._state}/sessions"):
            # Settings, credentials and the journal; what tools keep for a session may be read.
            return f"{path} is part of Hermes' own state."
        if PROCESS_SECRETS.match(path):
            return f"{path} shows another process's memory or environment."
        return ""


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
