"""Listings, packages and the interface of skill sources."""

from __future__ import annotations

from typing import Literal, Protocol

from hermes.codec.values import Value

SourceTrust = Literal["builtin", "trusted", "community"]

TRUSTED_REPOS = frozenset(("openai/skills", "anthropics/skills", "huggingface/skills"))


class SkillListing(Value):
    """`identifier` is the argument of `install`; `url` is a page for people."""

    source: str
    identifier: str
    name: str
    description: str = ""
    trust: SourceTrust = "community"
    version: str = ""
    url: str = ""
    installs: int = 0


class SkillPackage(Value):
    """A downloaded skill, not yet checked."""

    listing: SkillListing
    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


class SkillSource(Protocol):
    """A source of skills. Methods may raise NotFound and HermesError."""

    @property
    def id(self) -> str: ...

    def claims(self, identifier: str) -> bool:
        """Returns whether this source handles the identifier."""
        ...

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        """Returns the best matches first; an empty query lists everything."""
        ...

    async def package(self, identifier: str) -> SkillPackage: ...


def repo_trust(repo: str) -> SourceTrust:
    return "trusted" if repo.lower() in TRUSTED_REPOS else "community"


def after_prefix(identifier: str, source: str) -> str:
    """Strips `source:` or `source/`; "" for other identifiers."""
    for sign in (":", "/"):
        if identifier.startswith(f"{source}{sign}"):
            return identifier[len(source) + 1 :]
    return ""


def count_matches(query: str, *texts: str) -> int:
    """Returns how many query words occur in the texts; 1 for an empty query."""
    words = query.lower().split()
    whole = " ".join(texts).lower()
    return sum(word in whole for word in words) if words else 1
