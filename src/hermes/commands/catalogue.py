"""All slash commands that come with the program."""

from __future__ import annotations

from hermes.commands import model, rollback, session, skills

COMMANDS = (*session.COMMANDS, *model.COMMANDS, *rollback.COMMANDS, *skills.COMMANDS)
EXTRA = skills.SkillCommands()
