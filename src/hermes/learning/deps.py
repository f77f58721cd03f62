"""What learning needs of a run."""

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
    """`skills` gives the library for a project; `open_app` makes the app that a rehearsal plays."""

    run: RunContext
    journal: SqliteJournal
    models: Models
    memory: MemoryService
    skills: Callable[[str], SkillLibrary]
    open_app: OpenApp
