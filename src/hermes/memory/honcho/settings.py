"""Settings of the Honcho provider (`honcho.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeVar

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonValue, Value, replace
from hermes.core.errors import ConfigError

T = TypeVar("T")
Level = Literal["minimal", "low", "medium", "high", "max"]
LEVELS: tuple[Level, ...] = ("minimal", "low", "medium", "high", "max")
VARIABLES = ("HONCHO_API_KEY", "HONCHO_BASE_URL")
HOSTED = "https://api.honcho.dev"
MOST_DEPTH = 3
LONG_QUERY, LONGER_QUERY = 120, 400


class HonchoSettings(Value, rename="camel"):
    api_key: str = ""
    base_url: str = ""
    workspace: str = "hermes"
    peer_name: str = "user"
    ai_peer: str = "hermes"
    recall_mode: Literal["hybrid", "context", "tools"] = "hybrid"
    write_frequency: Literal["async", "turn", "session"] | int = "async"
    session_strategy: Literal["per-directory", "per-repo", "per-session", "global"] = (
        "per-directory"
    )
    context_cadence: int = 1
    dialectic_cadence: int = 2
    dialectic_depth: int = 1
    dialectic_reasoning_level: Level = "low"
    reasoning_level_cap: Level = "high"
    dialectic_max_chars: int = 600
    context_tokens: int | None = None
    message_max_chars: int = 25_000
    observation_mode: Literal["directional", "unified"] = "directional"
    save_messages: bool = True
    sessions: dict[str, str] = {}
    """Session names by folder."""

    @property
    def url(self) -> str:
        return (self.base_url or HOSTED).rstrip("/")

    def session_name(self, session_id: str, cwd: str) -> str:
        if own := self.sessions.get(cwd):
            return safe_name(own)
        match self.session_strategy:
            case "global":
                return safe_name(self.workspace)
            case "per-session":
                return safe_name(session_id)
            case "per-repo":
                folders = (Path(cwd), *Path(cwd).parents)
                repository = (folder for folder in folders if (folder / ".git").exists())
                return safe_name(next(repository, Path(cwd)).name)
            case "per-directory":
                return safe_name(Path(cwd).name or "root")

    def level_for(self, query: str, wanted: Level | None = None) -> Level:
        """Return the reasoning level for a question: higher for long ones, up to the cap."""
        if wanted:
            return wanted
        more = 2 if len(query) >= LONGER_QUERY else 1 if len(query) >= LONG_QUERY else 0
        level = LEVELS.index(self.dialectic_reasoning_level) + more
        return LEVELS[min(level, LEVELS.index(self.reasoning_level_cap))]


def change_settings(home: Path, person_home: Path, **changes: JsonValue) -> None:
    """Change settings, by their names in the file, in the home's `honcho.json`; other settings
    stay, including those copied from the shared file. Raises ConfigError for an invalid value."""
    raw = _read(dict[str, JsonValue], home, person_home) | changes
    try:
        convert(HonchoSettings, raw)
    except DecodeError as error:
        raise ConfigError(f"The setting is invalid ({error}); nothing was changed.") from error
    replace_file(home / "honcho.json", json.dumps(raw, indent=2, ensure_ascii=False).encode())


def load_settings(home: Path, person_home: Path, env: Mapping[str, str]) -> HonchoSettings:
    """Read the home's file, else the shared one; environment variables win. Raises ConfigError for
    an invalid file."""
    found = _read(HonchoSettings, home, person_home)
    return replace(
        found,
        api_key=env.get("HONCHO_API_KEY") or found.api_key,
        base_url=env.get("HONCHO_BASE_URL") or found.base_url,
    )


def shared_settings(person_home: Path) -> Path:
    """Return the path of the settings file that other programs share."""
    return person_home / ".honcho" / "config.json"


def _read(kind: type[T], home: Path, person_home: Path) -> T:
    """Read the first of the two files that exists. Raises ConfigError."""
    for path in (home / "honcho.json", shared_settings(person_home)):
        try:
            return decode(kind, path.read_bytes())
        except FileNotFoundError:
            continue
        except (DecodeError, OSError) as error:
            raise ConfigError(f"{path} is not valid ({error}); fix or remove it.") from error
    return kind()


def safe_name(text: str) -> str:
    """Replace characters that Honcho does not accept; a changed name gets a hash suffix to stay
    unique."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:80]
    if plain == text:
        return plain
    return f"{plain or 'x'}-{blake2b(text.encode(), digest_size=3).hexdigest()}"
