"""What individual programs need beyond the confinement: their own keys for reading, and their usual
download folders."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.values import Value
from hermes.policy.shell.simple_commands import executed, simple_commands


class ProgramNeeds(Value):
    """What a program needs below the home folder."""

    # Readable.
    keys: tuple[str, ...] = ()
    # Writable, and created if missing.
    folders: tuple[str, ...] = ()


_NODE = (".npmrc", ".yarnrc.yml")
_PYTHON = (".pypirc", ".netrc")
_CLOUD = (".aws", ".azure", ".config/gcloud", ".boto")
_REMOTE = (".ssh", ".git-credentials", ".config/git/credentials", ".netrc", ".config/gh", ".gnupg")
PROGRAMS: dict[str, ProgramNeeds] = {
    "aws": ProgramNeeds(keys=(".aws",)),
    "az": ProgramNeeds(keys=(".azure",)),
    "bun": ProgramNeeds(keys=_NODE, folders=(".bun",)),
    "bundle": ProgramNeeds(keys=(".gem/credentials",), folders=(".bundle", ".gem")),
    "cargo": ProgramNeeds(
        keys=(".cargo/credentials", ".cargo/credentials.toml"), folders=(".cargo",)
    ),
    "doctl": ProgramNeeds(keys=(".config/doctl",)),
    "docker": ProgramNeeds(keys=(".docker",)),
    "gcloud": ProgramNeeds(keys=(".config/gcloud", ".boto")),
    "gem": ProgramNeeds(keys=(".gem/credentials",), folders=(".gem",)),
    "gh": ProgramNeeds(keys=(".config/gh", ".netrc")),
    "glab": ProgramNeeds(keys=(".config/glab-cli", ".netrc")),
    "go": ProgramNeeds(keys=(".netrc",), folders=("go",)),
    "gradle": ProgramNeeds(keys=(".gradle/gradle.properties",), folders=(".gradle",)),
    "hcloud": ProgramNeeds(keys=(".config/hcloud",)),
    "helm": ProgramNeeds(keys=(".kube",)),
    "kubectl": ProgramNeeds(keys=(".kube", *_CLOUD)),
    "mvn": ProgramNeeds(keys=(".m2/settings.xml",), folders=(".m2",)),
    "npm": ProgramNeeds(keys=_NODE, folders=(".npm",)),
    "npx": ProgramNeeds(keys=_NODE, folders=(".npm",)),
    "pip": ProgramNeeds(keys=_PYTHON),
    "pip3": ProgramNeeds(keys=_PYTHON),
    "pnpm": ProgramNeeds(keys=_NODE, folders=(".local/share/pnpm", ".local/state/pnpm")),
    "podman": ProgramNeeds(keys=(".config/containers", ".local/share/containers", ".docker")),
    "poetry": ProgramNeeds(keys=_PYTHON),
    "psql": ProgramNeeds(keys=(".pgpass",)),
    "rclone": ProgramNeeds(keys=(".config/rclone",)),
    "rustup": ProgramNeeds(folders=(".rustup", ".cargo")),
    "terraform": ProgramNeeds(keys=(".terraform.d", *_CLOUD)),
    "uv": ProgramNeeds(keys=_PYTHON, folders=(".local/share/uv",)),
    "yarn": ProgramNeeds(keys=_NODE, folders=(".yarn",)),
}
_NAMES = ("git", *PROGRAMS)
_GIT_REMOTE = frozenset(("clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule"))
# Subcommands with which project tools run code of the project.
_RUNNING = frozenset(
    "run test start exec x dlx build bench install-test t tst restart stop generate tool".split()
)
# Programs that only show or pass on data, and run nothing.
_PLAIN = frozenset(
    """: [ [[ awk basename cat cd column cut date dirname echo export false grep head jq ls nl
    printf pwd sed set sleep sort tail tee test time tr true uniq wc which""".split()
)


def find_needs(script: str) -> ProgramNeeds:
    """Return folders for every known program that the script runs by name. Keys are included only
    if nothing else runs, because any other program could read them."""
    if not any(name in script for name in _NAMES):
        return ProgramNeeds()
    keys: list[str] = []
    folders: list[str] = []
    trusted = "$(" not in script and "`" not in script and "<(" not in script
    for command in simple_commands(script):
        words = executed(command.words)
        if not words:
            continue
        if words[0] == "git":
            keys += () if _GIT_REMOTE.isdisjoint(words) else _REMOTE
        elif found := PROGRAMS.get(words[0]):
            keys += found.keys
            folders += found.folders
            trusted = trusted and not _runs_project_code(words)
        else:
            trusted = trusted and words[0] in _PLAIN
    return ProgramNeeds(
        keys=tuple(dict.fromkeys(keys)) if trusted else (), folders=tuple(dict.fromkeys(folders))
    )


def make_folders(home: str, folders: tuple[str, ...]) -> None:
    """Create the folders, so that a tool finds them at its first use; `home` itself exists."""
    for folder in folders:
        path = Path(home, folder)
        if not path.exists() and Path(home).is_dir():
            path.mkdir(parents=True, exist_ok=True, mode=0o755)


def _runs_project_code(words: tuple[str, ...]) -> bool:
    """Return whether a command such as `npm test` or `cargo run` runs code of the project."""
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    return words[0] in ("npx", "gradle", "mvn", "bundle", "bun") or verb in _RUNNING
