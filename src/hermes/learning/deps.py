"""The dependencies of learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hermes.config.run_context import RunContext
from hermes.journal.journal import SqliteJournal
from hermes.memory.service import MemoryService
from hermes.models.models import Models
from hermes.replay.replay import OpenApp
from hermes.skills.library import SkillLibrary


class LearningDeps(NamedTuple):
    """`skills` returns the library of a project; `open_app` creates the app of a rehearsal."""

    run: RunContext
    journal: SqliteJournal
    models: Models
    memory: MemoryService
    skills: Callable[[str], SkillLibrary]
    open_app: OpenApp
