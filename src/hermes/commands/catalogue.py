"""All built-in slash commands."""

from __future__ import annotations

from hermes.commands.background import BACKGROUND_COMMANDS
from hermes.commands.cron import CRON_COMMANDS
from hermes.commands.extensions import EXTENSION_COMMANDS, PluginCommands, QuickCommands
from hermes.commands.goals import GOAL_COMMANDS
from hermes.commands.history import HISTORY_COMMANDS
from hermes.commands.info import INFO_COMMANDS
from hermes.commands.input import INPUT_COMMANDS
from hermes.commands.insights import INSIGHTS_COMMANDS
from hermes.commands.memory import MEMORY_COMMANDS
from hermes.commands.moa import MOA_COMMANDS
from hermes.commands.model import MODEL_COMMANDS
from hermes.commands.plan import PLAN_COMMANDS
from hermes.commands.rollback import ROLLBACK_COMMANDS
from hermes.commands.session import SESSION_COMMANDS
from hermes.commands.skills import SKILL_COMMANDS, SkillCommands
from hermes.commands.tuning import TUNING_COMMANDS

_GROUPS = {
    "Session": (*SESSION_COMMANDS, *HISTORY_COMMANDS),
    "Beside the turn": (*BACKGROUND_COMMANDS, *GOAL_COMMANDS, *PLAN_COMMANDS, *MOA_COMMANDS),
    "Model and display": (*MODEL_COMMANDS, *TUNING_COMMANDS),
    "Files": ROLLBACK_COMMANDS,
    "Memory and skills": (*MEMORY_COMMANDS, *SKILL_COMMANDS),
    "Scheduled jobs": CRON_COMMANDS,
    "Extensions": EXTENSION_COMMANDS,
    "Hermes": (*INFO_COMMANDS, *INSIGHTS_COMMANDS),
    "Input": INPUT_COMMANDS,
}
COMMANDS = tuple(
    command._replace(group=group) for group, commands in _GROUPS.items() for command in commands
)
# The first one that knows a name runs it.
DYNAMIC_COMMANDS = (QuickCommands(), PluginCommands(), SkillCommands())
