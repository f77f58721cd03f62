"""All built-in slash commands."""

from __future__ import annotations

from hermes.commands import (
    around,
    attaching,
    context,
    curator,
    insights,
    mcp,
    memory,
    model,
    past,
    plugins,
    quick,
    rollback,
    session,
    skills,
    snapshot,
    tuning,
    work,
)

COMMANDS = (
    *session.COMMANDS,
    *past.COMMANDS,
    *work.COMMANDS,
    *model.COMMANDS,
    *tuning.COMMANDS,
    *rollback.COMMANDS,
    *context.COMMANDS,
    *mcp.COMMANDS,
    *memory.COMMANDS,
    *plugins.COMMANDS,
    *skills.COMMANDS,
    *curator.COMMANDS,
    *around.COMMANDS,
    *attaching.COMMANDS,
    *insights.COMMANDS,
    *snapshot.COMMANDS,
)
EXTRA = quick.QuickCommands(plugins.PluginCommands(skills.SkillCommands()))
