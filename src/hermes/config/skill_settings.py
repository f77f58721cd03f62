"""The settings about skills: which ones there are, who may write them, how they are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive, Seconds


class SkillSettings(Value):
    """Procedures that the agent can load, and write itself."""

    enabled: Annotated[bool, "List skills in the prompt."] = True
    external_dirs: Annotated[tuple[str, ...], "More folders with skills; they are only read."] = ()
    trusted_projects: Annotated[
        tuple[str, ...], "Project folders whose own skills are read; `hermes skills trust` adds."
    ] = ()
    disabled: Annotated[tuple[str, ...], "Skills that are switched off."] = ()
    platform_disabled: Annotated[
        dict[str, tuple[str, ...]], "Skills that are off on one surface: `acp: [name]`."
    ] = {}
    config: Annotated[dict[str, Any], "Values of the settings that skills declare."] = {}
    template_vars: Annotated[bool, "Fill in `${HERMES_SKILL_DIR}` and `${HERMES_SESSION_ID}`."] = (
        True
    )
    inline_shell: Annotated[bool, "Run !`commands` in the text of a skill when it is loaded."] = (
        False
    )
    inline_shell_timeout: Annotated[Seconds, "Seconds for each of them."] = 10
    guard_agent_created: Annotated[
        bool, "Refuse a skill of the agent's that the scan calls bad."
    ] = True
    write_approval: Annotated[bool, "What the agent writes waits for `/skills approve`."] = False
    creation_nudge_interval: Annotated[
        Count, "Tool calls of a session after which it is looked back upon; 0 for never."
    ] = 10
    review_calls: Annotated[
        Count, "Tool calls of one task after which it is looked back upon; 0 for never."
    ] = 5
    rehearse: Annotated[
        Count, "Recorded sessions that a change is tried on before it is used; 0 for none."
    ] = 3
    unrehearsed: Annotated[
        Literal["new", "all", "none"],
        "What comes into use where no session can be played again: new skills, also changes, or "
        "nothing before you approve it.",
    ] = "new"
    index_max_chars: Annotated[Count, "Characters of the list of skills in the prompt."] = 1_960
    hub_urls: Annotated[
        dict[str, str],
        "Addresses to use instead of the usual: github_api, github_raw, skills_sh, clawhub, "
        "lobehub.",
    ] = {}


class CuratorBackupSettings(Value):
    enabled: Annotated[bool, "Copy all skills before some are moved."] = True
    keep: Annotated[Positive, "Copies of all skills that are kept."] = 5


class CuratorSettings(Value):
    """What becomes of skills of the agent's own that nobody uses. They are never deleted."""

    enabled: Annotated[bool, "Look after them from time to time."] = True
    interval_hours: Annotated[Positive, "Hours between two looks."] = 168
    min_idle_hours: Annotated[Count, "Hours without a session before a look."] = 2
    stale_after_days: Annotated[Positive, "Days without use after which one counts as stale."] = 30
    archive_after_days: Annotated[Positive, "Days without use after which one is archived."] = 90
    most_skills: Annotated[Count, "How many are kept at hand; 0 for any number."] = 100
    consolidate: Annotated[bool, "Also let a model merge those that are about the same."] = False
    prune_builtins: Annotated[bool, "Also skills that came with Hermes."] = False
    backup: CuratorBackupSettings = CuratorBackupSettings()
