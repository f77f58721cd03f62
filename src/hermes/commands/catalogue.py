"""All slash commands that come with the program."""

from __future__ import annotations

from hermes.commands import context, mcp, memory, model, rollback, session, skills

COMMANDS = (
    *session.COMMANDS,
    *model.COMMANDS,
    *rollback.COMMANDS,
    *context.COMMANDS,
    *mcp.COMMANDS,
    *memory.COMMANDS,
    *skills.COMMANDS,
)
EXTRA = skills.SkillCommands()
