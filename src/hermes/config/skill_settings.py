"""Settings of skills and their curator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive, Seconds


class SkillSettings(Value):
    """Procedures that the agent can load and write."""

    enabled: Annotated[bool, "List skills in the prompt."] = True
    external_dirs: Annotated[tuple[str, ...], "Additional skill folders, read-only."] = ()
    trusted_projects: Annotated[
        tuple[str, ...], "Projects whose skills are loaded; `hermes skills trust` adds one."
    ] = ()
    disabled: Annotated[tuple[str, ...], "Disabled skills."] = ()
    platform_disabled: Annotated[
        dict[str, tuple[str, ...]], "Disabled skills by surface: `cli: [name]`."
    ] = {}
    config: Annotated[dict[str, Any], "Values of settings that skills declare."] = {}
    template_vars: Annotated[bool, "Expand `${HERMES_SKILL_DIR}` and `${HERMES_SESSION_ID}`."] = (
        True
    )
    inline_shell: Annotated[bool, "Run !`commands` in the text of a loaded skill."] = False
    inline_shell_timeout: Annotated[Seconds, "Timeout of each command, in seconds."] = 10
    guard_agent_created: Annotated[
        bool, "Refuse skills written by the agent if the scan finds them dangerous."
    ] = True
    write_approval: Annotated[bool, "Skills written by the agent wait for `/skills approve`."] = (
        False
    )
    creation_nudge_interval: Annotated[
        Count, "Tool calls of a session after which it is reviewed; 0 for never."
    ] = 10
    review_calls: Annotated[
        Count, "Tool calls of one task after which it is reviewed; 0 for never."
    ] = 5
    rehearse: Annotated[
        Count, "Recorded sessions on which a change is tested before use; 0 for none."
    ] = 3
    unrehearsed: Annotated[
        Literal["new", "all", "none"],
        "What is enabled if no session can be replayed: new skills, all changes, or nothing "
        "before you approve it.",
    ] = "new"
    index_max_chars: Annotated[Count, "Characters of the skill list in the prompt."] = 1_960
    hub_urls: Annotated[
        dict[str, str],
        "Replacement URLs for: github_api, github_raw, skills_sh, clawhub, lobehub.",
    ] = {}


class CuratorBackupSettings(Value):
    enabled: Annotated[bool, "Back up all skills before some are archived."] = True
    keep: Annotated[Positive, "Number of backups to keep."] = 5


class CuratorSettings(Value):
    """Archives unused skills that the agent wrote. Skills are never deleted."""

    enabled: Annotated[bool, "Run the curator."] = True
    interval_hours: Annotated[Positive, "Hours between two runs."] = 168
    min_idle_hours: Annotated[Count, "Idle hours before a run."] = 2
    stale_after_days: Annotated[Positive, "Days without use until a skill is stale."] = 30
    archive_after_days: Annotated[Positive, "Days without use until a skill is archived."] = 90
    most_skills: Annotated[Count, "Maximum number of active skills; 0 for no limit."] = 100
    consolidate: Annotated[bool, "Let a model merge similar skills."] = False
    prune_builtins: Annotated[bool, "Also archive bundled skills."] = False
    backup: CuratorBackupSettings = CuratorBackupSettings()
