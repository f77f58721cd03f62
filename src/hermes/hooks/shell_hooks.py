"""The programs that the settings name as hooks: which of them may run, and what they see."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.core.errors import HermesError
from hermes.hooks.registry import HOOKS, Hooks
from hermes.hooks.shell import FILE, HookAllowlist, ShellCallback, ShellHook, hash_files, is_allowed

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

log = logging.getLogger(__name__)

OWNER = "settings"
# The registry would give up first otherwise, and could not say which program it was.
SPARE_SECONDS = 10.0


def shell_hooks(run: RunContext) -> Iterator[ShellHook]:
    """Every entry of the settings, also those that cannot be used."""
    for event, entries in run.settings.hooks.items():
        for entry in entries:
            yield ShellHook(
                event=event,
                command=entry.command,
                matcher=entry.matcher,
                timeout=entry.timeout,
                fail_closed=entry.fail_closed,
            )


def consents_of(run: RunContext) -> HookAllowlist:
    return HookAllowlist(run.home.root / FILE)


def environment_of(run: RunContext) -> dict[str, str]:
    """What programs see: everything but secrets."""
    return child_environment(run.env, run.settings.terminal.env_passthrough)


def find_problem(hook: ShellHook) -> str:
    """Why an entry cannot be used as it is written, in one sentence; "" for none."""
    if hook.event not in HOOKS:
        return f"There is no hook {hook.event!r}; `hermes hooks list` shows those that there are."
    try:
        hook.matches("")
        hash_files(hook.command)
    except (HermesError, OSError) as error:
        return str(error)
    return ""


def hooks_without_consent(run: RunContext) -> list[ShellHook]:
    """Those that nobody has allowed as they are now."""
    consents = consents_of(run)
    usable = (hook for hook in shell_hooks(run) if not find_problem(hook))
    return [hook for hook in usable if not is_allowed(hook, consents)]


def record_consent(run: RunContext, hook: ShellHook) -> None:
    run.home.ensure_folder(run.home.root)
    consents_of(run).allow(hook.event, hook.command, at=run.world.clock.now())


def add_shell_hooks(run: RunContext, hooks: Hooks) -> None:
    """Add those that may run. What is wrong with the others is told as news of the run."""
    if not run.settings.hooks:
        return
    consents, env = consents_of(run), environment_of(run)
    for hook in shell_hooks(run):
        if words := _refusal(run, hook, consents):
            run.notices.append(words)
            log.warning("hook is not run", extra={"why": words})
            if not hook.fail_closed or hook.event not in HOOKS:
                continue
        callback = ShellCallback(hook, consents, env=env)
        hooks.add(
            hook.event,
            callback,
            owner=f"{OWNER}: {hook.command}",
            timeout=hook.seconds + SPARE_SECONDS,
            fail_closed=hook.fail_closed,
        )


def _refusal(run: RunContext, hook: ShellHook, consents: HookAllowlist) -> str:
    if words := find_problem(hook):
        return words
    try:
        if is_allowed(hook, consents):
            return ""
        if run.settings.hooks_auto_accept:
            record_consent(run, hook)
            return ""
    except HermesError as error:
        return str(error)
    return (
        f"The hook {hook.command} ({hook.event}) is not allowed yet, or has changed; "
        "it runs once you allow it in a terminal or with --accept-hooks."
    )
