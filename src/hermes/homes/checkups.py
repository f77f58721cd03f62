"""More that `hermes doctor` looks at: logins, memory and identity, toolsets, profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.environment import process_environment
from hermes.config.home import Home, profile_home, profile_names, root_home
from hermes.config.load import Config, load
from hermes.context.project_files import MOST_CHARS
from hermes.core.errors import HermesError, UsageError
from hermes.credentials.accounts import open_accounts
from hermes.homes.profiles import DEFAULT
from hermes.memory.entries import FILE_NAMES, entries_size, split_entries
from hermes.tools.toolbox import wanted_names

# What bots listen with.
BOT_TOKENS = ("_BOT_TOKEN", "_APP_TOKEN")


async def login_findings(config: Config) -> list[Diagnostic]:
    """Nothing is contacted: what was last heard of each key and login."""
    async with open_accounts(config, env=process_environment()) as accounts:
        rows = await accounts.rows()
    found = []
    for row in rows:
        name = f"{row.provider} {row.label or row.id}"
        if row.status == "dead":
            fix = f"`hermes login {row.provider}`" if row.type == "oauth" else "`hermes auth add`"
            found.append(warning("login", f"{name} is no longer accepted ({row.why})", fix=fix))
        elif row.status == "ok":
            found.append(ok(f"{name} is ready"))
        else:
            found.append(ok(f"{name} is {row.status}"))
    return found or [ok("there is no key or login besides those in variables")]


def memory_findings(config: Config) -> list[Diagnostic]:
    """The files that every session is shown."""
    settings, folder = config.settings.memory, config.home.memories
    limits = {"memory": settings.memory_char_limit, "user": settings.user_char_limit}
    found = [
        _length(folder / name, entries_size(split_entries(text)), limits[target])
        for target, name in FILE_NAMES.items()
        if (text := _text(folder / name))
    ]
    if soul := _text(config.home.soul):
        longest = config.settings.context_file_max_chars or MOST_CHARS
        found.append(_length(config.home.soul, len(soul), longest))
    return found or [ok("nothing is remembered yet, and there is no SOUL.md")]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _length(path: Path, chars: int, limit: int) -> Diagnostic:
    if chars > limit:
        words = f"{path} has {chars:,} characters, and {limit:,} are shown"
        return warning("memory", words, fix=f"shorten {path}")
    return ok(f"{path} has {chars:,} of {limit:,} characters")


def tool_findings(config: Config) -> list[Diagnostic]:
    try:
        names = wanted_names(config.settings)
    except UsageError as error:
        fix = "`hermes tools list` shows them, `hermes config set toolsets A,B` chooses"
        return [fault("toolset", str(error).rstrip("."), fix=fix, key="toolsets")]
    if not names:
        return [warning("tools", "sessions are offered no tools", fix="`hermes tools enable file`")]
    return [ok(f"sessions are offered {len(names)} tools")]


def profile_findings(home: Home) -> list[Diagnostic]:
    root = root_home(home)
    found = [_profile(root, name) for name in profile_names(root)]
    return [*found, *_shared_tokens(root)] or [ok("there is only the default profile")]


def _shared_tokens(root: Home) -> Iterator[Diagnostic]:
    """A platform lets one program at a time listen with a token: two profiles take each other's
    messages away."""
    holders: dict[tuple[str, str], list[str]] = {}
    for name in (DEFAULT, *profile_names(root)):
        try:
            secrets = load(profile_home(root, name), env={}).secrets
        except HermesError:
            continue
        for variable in secrets.names():
            if variable.endswith(BOT_TOKENS) and (value := secrets.get(variable)):
                holders.setdefault((variable, value), []).append(name)
    for (variable, _), names in holders.items():
        if len(names) > 1:
            words = f"{variable} is the same in {' and '.join(names)}; only one can listen there"
            fix = f"`hermes -p {names[-1]} config set {variable} …` with a token of its own"
            yield warning("token", words, fix=fix)


def _profile(root: Home, name: str) -> Diagnostic:
    try:
        findings = load(profile_home(root, name), env={}).diagnostics
    except HermesError as error:
        return warning("profile", f"{name}: {error}", fix="`hermes profile rename` it")
    broken = [each for each in findings if each.level == "error"]
    if broken:
        return warning("profile", f"{name}: {broken[0].text}", fix=f"`hermes -p {name} doctor`")
    return ok(f"{name} at {root.profiles / name}")
