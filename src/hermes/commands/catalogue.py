"""All slash commands that come with the program."""

from __future__ import annotations

from hermes.commands import context, insights, memory, model, rollback, session, skills

COMMANDS = (
    *session.COMMANDS,
    *model.COMMANDS,
    *rollback.COMMANDS,
    *context.COMMANDS,
    *memory.COMMANDS,
    *skills.COMMANDS,
    *insights.COMMANDS,
)
EXTRA = skills.SkillCommands()
