"""The programs that the settings name as hooks: which of them may run, and what they see."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.core.errors import HermesError
from hermes.hooks.catalogue import HOOKS
from hermes.hooks.consent import FILE, Consents, fingerprint
from hermes.hooks.registry import Hooks
from hermes.hooks.shell import ShellCallback, ShellHook, is_allowed

if TYPE_CHECKING:
    from hermes.app.build import App

log = logging.getLogger(__name__)

OWNER = "settings"
# The registry would give up first otherwise, and could not say which program it was.
SPARE_SECONDS = 10.0


def shell_hooks(app: App) -> Iterator[ShellHook]:
    """Every entry of the settings, also those that cannot be used."""
    for event, entries in app.settings.hooks.items():
        for entry in entries:
            yield ShellHook(
                event=event,
                command=entry.command,
                matcher=entry.matcher,
                timeout=entry.timeout,
                fail_closed=entry.fail_closed,
            )


def consents_of(app: App) -> Consents:
    return Consents(app.home.root / FILE)


def environment_of(app: App) -> dict[str, str]:
    """What programs see: everything but secrets."""
    return child_environment(app.env, app.settings.terminal.env_passthrough)


def trouble(hook: ShellHook) -> str:
    """Why an entry cannot be used as it is written, in one sentence; "" for none."""
    if hook.event not in HOOKS:
        return f"There is no hook {hook.event!r}; `hermes hooks list` shows those that there are."
    try:
        hook.matches("")
        fingerprint(hook.command)
    except (HermesError, OSError) as error:
        return str(error)
    return ""


def undecided(app: App) -> list[ShellHook]:
    """Those that nobody has allowed as they are now."""
    consents = consents_of(app)
    usable = (hook for hook in shell_hooks(app) if not trouble(hook))
    return [hook for hook in usable if not is_allowed(hook, consents)]


def allow(app: App, hook: ShellHook) -> None:
    app.home.folder(app.home.root)
    consents_of(app).allow(hook.event, hook.command, at=app.world.clock.now())


def add_shell_hooks(app: App, hooks: Hooks) -> None:
    """Add those that may run. What is wrong with the others is told as news of the run."""
    if not app.settings.hooks:
        return
    consents, env = consents_of(app), environment_of(app)
    for hook in shell_hooks(app):
        if words := _refusal(app, hook, consents):
            app.news.append(words)
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


def _refusal(app: App, hook: ShellHook, consents: Consents) -> str:
    if words := trouble(hook):
        return words
    try:
        if is_allowed(hook, consents):
            return ""
        if app.settings.hooks_auto_accept:
            allow(app, hook)
            return ""
    except HermesError as error:
        return str(error)
    return (
        f"The hook {hook.command} ({hook.event}) is not allowed yet, or has changed; "
        "it runs once you allow it in a terminal or with --accept-hooks."
    )
