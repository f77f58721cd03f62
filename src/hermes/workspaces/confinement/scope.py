"""What a confined command may reach, and how that is reported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value

Kind = Literal["none", "bubblewrap", "landlock", "container", "machine", "cloud"]


class ConfinementReport(Value):
    """How commands are confined."""

    # "none" means that commands have all rights of the user who started Hermes; `gaps` say why.
    kind: Kind
    # What is enforced.
    details: tuple[str, ...] = ()
    # What is not enforced.
    gaps: tuple[str, ...] = ()

    @property
    def confined(self) -> bool:
        return self.kind != "none"


def cloud_report(service: str, *, network: bool) -> ConfinementReport:
    network_state = "the network is open" if network else "no network"
    return ConfinementReport(
        kind="cloud",
        details=(f"commands run in a {service} sandbox; {network_state}",),
        gaps=("the service sees files and commands",),
    )


def repository_of(root: str) -> str:
    """Return the folder that `git commit` in `root` writes to, if it is outside `root`: a
    repository further up, the main repository of a worktree, or the one around a submodule."""
    for folder in (Path(root), *Path(root).parents):
        found = folder / ".git"
        if found.is_dir():
            return "" if folder == Path(root) else str(found.resolve())
        if found.is_file():
            return _resolve_gitdir(found)
    return ""


def _resolve_gitdir(file: Path) -> str:
    """Return the repository of a worktree. A worktree names its part of the repository, and that
    part names the repository."""
    try:
        content = file.read_text("utf-8", "replace")
        if not content.startswith("gitdir:"):
            return ""
        part = (file.parent / content.removeprefix("gitdir:").strip()).resolve()
        common = part / "commondir"
        whole = (part / common.read_text().strip()).resolve() if common.is_file() else part
    except OSError:
        return ""
    # A command that can write the file must not open another folder with it.
    return str(whole) if (whole / "objects").is_dir() and (whole / "refs").is_dir() else ""


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
# Below the home folder: what tools download, install and compile for all projects.
TOOL_FOLDERS = (
    ".cache", ".npm", ".npm-global", ".yarn", ".bun", ".deno", ".nvm", ".node-gyp", ".pnpm-store",
    ".local/share/pnpm", ".local/state/pnpm", ".local/share/uv", ".local/share/virtualenv",
    ".local/share/virtualenvs", ".local/share/pypoetry", ".local/share/hatch", ".local/share/mise",
    ".local/lib", ".pyenv", ".conda", ".virtualenvs", "miniconda3", "anaconda3", "miniforge3",
    ".ipython", ".jupyter", ".local/share/jupyter", ".matplotlib", ".keras", ".nltk_data",
    ".cargo", ".rustup", "go", ".config/go", ".m2", ".gradle", ".ivy2", ".sbt", ".sdkman",
    ".android", ".nuget", ".dotnet", ".local/share/NuGet", ".templateengine", ".composer", ".gem",
    ".bundle", ".local/share/gem", ".rbenv", ".asdf", ".stack", ".cabal", ".ghcup", ".julia",
    ".pub-cache", ".dart", ".hex", ".mix", ".opam", ".expo", ".cocoapods", ".conan", ".conan2",
    ".ccache", ".terraform.d/plugin-cache", ".local/share/ms-playwright", ".texlive2023",
)  # fmt: skip
# Machine-wide: password hashes, and the sockets of services (containers, desktop, agents).
SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers")
SOCKET_FOLDERS = ("/run", "/var/run")
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
# Without it, systemd-resolved cannot resolve host names.
RESOLVER = "/run/systemd/resolve"


def is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - a hundred times for each command


class ConfinementScope(Value):
    """What a confined command may read and change.

    root           the workspace, which can be changed
    home           the user's home folder
    private        a session folder for temporary files
    cache          a folder for downloads that sessions share
    hidden         paths that are invisible in addition to the known secrets of `home`
    writable       other paths that can be changed
    readable       paths inside something hidden that can be read
    shown          known secrets that stay visible
    network        the network can be used
    shared_memory  the shared memory of other programs can be used
    ordinary       allow ordinary work: the machine's temporary files, the folders of tools below
                   `home` and in `system`, and sockets of services
    system         machine-wide folders of tools
    repository     where `git commit` writes, if outside `root`
    safe           if set, nothing outside these folders can be changed except `private`
    """

    root: str
    home: str
    private: str
    cache: str
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    network: bool = False
    shared_memory: bool = True
    ordinary: bool = False
    system: tuple[str, ...] = ()
    repository: str = ""
    safe: tuple[str, ...] = ()

    @property
    def temporary(self) -> str:
        return f"{self.private}/tmp"

    @property
    def notes(self) -> str:
        return f"{self.private}/notes"

    @property
    def own_folders(self) -> tuple[str, str, str]:
        """Return the open folders in the private place. The place itself stays closed: a command
        could otherwise put a link where the next command expects a folder."""
        return self.temporary, self.notes, self.cache

    def secrets(self, *, missing: bool = False) -> list[str]:
        """Return existing secrets, and with `missing` the others too. Links are resolved, because
        hiding a link hides nothing."""
        below_home = (f"{self.home}/{name}" for name in SECRETS if name not in self.shown)
        named = (*below_home, *SYSTEM, *self.hidden)
        real = {os.path.realpath(path) for path in named if missing or os.path.lexists(path)}
        return sorted(path for path in real if path != self.root)

    def open_folders(self) -> list[str]:
        """Return folders that can be changed with everything in them."""
        more = TEMPORARY if self.ordinary else ()
        wanted = (self.root, *self.writable, self.repository, *more)
        return list(outermost(path for path in self._restrict_to_safe(wanted) if is_folder(path)))

    def tool_folders(self) -> list[str]:
        """Return the folders of tools that this user has."""
        if not self.ordinary:
            return []
        named = (*(f"{self.home}/{name}" for name in TOOL_FOLDERS), *self.system)
        real = {os.path.realpath(path) for path in named if is_folder(path)}
        return list(outermost(self._restrict_to_safe(real)))

    def _restrict_to_safe(self, paths: Iterable[str]) -> Iterator[str]:
        """Return the part of these folders that may be changed."""
        for path in paths:
            if not self.safe or any(below(path, folder) for folder in self.safe):
                yield path
            else:
                yield from (folder for folder in self.safe if path and below(folder, path))

    def writable_folders(self) -> list[str]:
        return list(outermost((*self.open_folders(), *self.tool_folders())))

    def exposed_secrets(self) -> list[str]:
        """Return secrets inside a folder that can be changed as a whole."""
        folders = self.open_folders()
        return [s for s in self.secrets() if any(below(s, folder) for folder in folders)]

    def describe(self) -> str:
        if not self.ordinary or self.safe:
            named = ", ".join(self.writable_folders())
            return " and ".join(
                (*((named,) if named else ()), "a private folder for temporary files")
            )
        named = ", ".join(outermost((self.root, *self.writable)))
        return f"{named}, temporary files and the folders of tools (caches, packages)"

    def prepare(self) -> None:
        for folder in self.own_folders:
            if Path(folder).is_symlink():
                Path(folder).unlink()
            Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Move caches to the private place, so that nothing which runs later is poisoned. Ordinary
        work keeps existing caches that it may change."""
        if self.ordinary and not self.safe:
            return dict(env)
        cache = self.cache
        return {
            **env,
            **({"TMPDIR": self.temporary} if self.safe else {}),
            "XDG_CACHE_HOME": cache,
            "npm_config_cache": f"{cache}/npm",
            "GOCACHE": f"{cache}/go-build",
            "GOMODCACHE": f"{cache}/go-mod",
            "CARGO_HOME": f"{cache}/cargo",
        }


def below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outermost(paths: Iterable[str]) -> Iterator[str]:
    """Drop paths that lie inside another one."""
    last = ""
    for path in sorted(paths):
        if not last or not below(path, last):
            last = path
            yield path
