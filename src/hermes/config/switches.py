"""Boolean environment variables."""

from __future__ import annotations

from collections.abc import Mapping

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})


def env_flag(env: Mapping[str, str], name: str) -> bool:
    """Whether a variable is set to a true word."""
    return env.get(name, "").strip().lower() in TRUE_WORDS
