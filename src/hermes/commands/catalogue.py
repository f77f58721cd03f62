"""All slash commands that come with the program."""

from __future__ import annotations

from hermes.commands import memory, model, rollback, session

COMMANDS = (*session.COMMANDS, *model.COMMANDS, *rollback.COMMANDS, *memory.COMMANDS)
