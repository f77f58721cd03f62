"""Takes a version of a skill back that does worse in use than the one before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.learning.regression import SkillRun, find_regression
from hermes.learning.rehearsals import ledger_of
from hermes.skills.history import Cause, Version
from hermes.skills.library import SkillLibrary
from hermes.skills.service import VERSION_DIGITS

if TYPE_CHECKING:
    from hermes.learning.deps import LearningDeps

BACK = "The skill {} is back at its version {}: {}."
PUT_AWAY = "The new skill {0} is in the archive: {1}. `hermes curator restore {0}` brings it back."
ASKED = "The skill {0} does not do well: {1}. `hermes skills revert {0}` takes the change back."


def revert_regression(deps: LearningDeps, skills: SkillLibrary, run: SkillRun) -> str:
    """Take this run down, and act on what all of them say: words for the person, "" for none. Only
    what the agent made is touched, nothing that is pinned, and what came back stays."""
    ledger = ledger_of(deps.run.home)
    ledger.record_run(run)
    try:
        present = skills.shelf.active(run.skill)
        if present is None or not _is_ours(skills, present, run):
            return ""
        words = find_regression(ledger.runs(run.skill), run.version, present.base[:VERSION_DIGITS])
        return _act(deps, skills, present, words) if words else ""
    except HermesError:
        # Somebody has changed or removed it meanwhile.
        return ""


def _is_ours(skills: SkillLibrary, present: Version, run: SkillRun) -> bool:
    if present.hash[:VERSION_DIGITS] != run.version or present.action.startswith("revert"):
        return False
    entry = skills.shelf.find(run.skill)
    is_pinned = skills.usages.of(run.skill).pinned
    return skills.shelf.provenance(entry) == "agent" and not is_pinned


def _act(deps: LearningDeps, skills: SkillLibrary, present: Version, words: str) -> str:
    name, cause = present.name, Cause(who="review", model=present.cause.model, words=words)
    if deps.run.settings.skills.write_approval:
        return ASKED.format(name, words)
    known = [one for one in skills.shelf.history(name) if one.hash == present.base]
    if known:
        skills.shelf.revert(name, known[-1].id, cause)
        skills.usages.record_patch(name)
        return BACK.format(name, known[-1].id, words)
    if present.base:
        return ""
    skills.curator().archive(name)
    return PUT_AWAY.format(name, words)
