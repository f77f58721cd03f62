"""What a confined command may reach: the workspace, a private place for temporary files, and the
machine read-only without its secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hermes.codec.values import Value

# Below the home folder: keys, tokens, logins, mail, browsers, histories, other agents.
SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".terraform.d",
    ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op",
    ".config/rclone", ".config/doctl", ".config/hcloud", ".config/sops", ".config/age",
    ".config/containers", ".config/Bitwarden", ".config/keepassxc", ".config/1Password",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".mozilla", ".thunderbird",
    ".var/app", "snap/firefox", "snap/chromium", "Library/Keychains",
    ".local/share/keyrings", ".local/share/kwalletd", ".local/share/containers",
    ".config/Signal", ".config/discord", ".config/Slack", ".local/share/TelegramDesktop",
    ".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".gradle/gradle.properties", ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".vault-token",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
    ".node_repl_history", ".local/share/fish/fish_history", ".Xauthority", ".ICEauthority",
    ".claude", ".claude.json", ".codex", ".gemini", ".config/opencode", ".hermes",
)  # fmt: skip
# Of the whole machine: password hashes, and the doors of services (containers, desktop, agents).
SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers")
DOORS = ("/run", "/var/run")
# Without it names of hosts are not resolved where systemd does that.
RESOLVER = "/run/systemd/resolve"


class Scope(Value):
    """`root` and `writable` can be changed, `private` is a folder of the session for temporary
    files, `cache` one for downloads that sessions share; `hidden` is out of sight in addition to
    the known secrets of `home`."""

    root: str
    home: str
    private: str
    cache: str
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: bool = False

    @property
    def temporary(self) -> str:
        return f"{self.private}/tmp"

    @property
    def notes(self) -> str:
        return f"{self.private}/notes"

    def secrets(self, *, missing: bool = False) -> list[str]:
        """Those that exist, and if wanted the `missing` ones, too; links followed, as hiding a link
        would hide nothing."""
        named = (*(f"{self.home}/{name}" for name in SECRETS), *SYSTEM, *self.hidden)
        real = {os.path.realpath(path) for path in named if missing or os.path.lexists(path)}
        return sorted(path for path in real if path != self.root)

    def changeable(self) -> list[str]:
        return [path for path in (self.root, *self.writable) if Path(path).is_dir()]

    def prepare(self) -> None:
        for folder in (self.temporary, self.notes, self.cache):
            Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Caches move to the private place: what others run later is not to be poisoned."""
        cache = self.cache
        return {
            **env,
            "XDG_CACHE_HOME": cache,
            "npm_config_cache": f"{cache}/npm",
            "GOCACHE": f"{cache}/go-build",
            "GOMODCACHE": f"{cache}/go-mod",
            "CARGO_HOME": f"{cache}/cargo",
        }


def below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outermost(paths: Iterable[str]) -> Iterator[str]:
    """Without those that lie in another one."""
    last = ""
    for path in sorted(paths):
        if not last or not below(path, last):
            last = path
            yield path
