"""Determines the provenance of a skill: bundled, hub, agent or user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hermes.skills.files import content_hash, read_tree
from hermes.skills.history import SkillHistory
from hermes.skills.scan import SkillEntry

Provenance = Literal["bundled", "hub", "agent", "user", "external", "project"]


class ProvenanceResolver:
    """`bundled` and `installed` are content hashes by skill name."""

    def __init__(
        self, history: SkillHistory, bundled: Mapping[str, str], installed: Mapping[str, str]
    ) -> None:
        self._history = history
        self._bundled = bundled
        self._installed = installed

    def of(self, entry: SkillEntry) -> Provenance:
        """Returns the provenance. A skill edited by a person counts as the user's own."""
        if entry.kind != "home":
            return entry.kind
        present = content_hash(read_tree(Path(entry.folder)))
        if self._installed.get(entry.name) == present:
            return "hub"
        if self._bundled.get(entry.name) == present:
            return "bundled"
        if self._history.version_in_use(entry.name, present) is None:
            return "user"
        versions = self._history.read(entry.name)
        settled = [one for one in versions if one.state in ("active", "past", "intended")]
        ours = all(one.cause.who in ("agent", "review", "curator") for one in settled)
        return "agent" if ours else "user"
