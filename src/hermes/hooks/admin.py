"""Shell hooks of the settings: loading, consent, listing and test runs."""

from __future__ import annotations

import difflib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import asdict

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.config.child_environment import child_environment
from hermes.core.errors import HermesError, NotFound
from hermes.hooks.registry import HOOKS, Hooks
from hermes.hooks.shell import (
    FILE,
    HookAllowlist,
    HookRun,
    ShellCallback,
    ShellHook,
    hash_files,
    is_allowed,
    run_hook,
    split_command,
)

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

log = logging.getLogger(__name__)

OWNER = "settings"
# Added to the program's timeout, so that the program times out before the registry.
EXTRA_SECONDS = 10.0


def shell_hooks(run: RunContext) -> Iterator[ShellHook]:
    """Yield every entry of the settings, including unusable ones."""
    for event, entries in run.settings.hooks.items():
        for entry in entries:
            yield ShellHook(event=event, **asdict(entry))


def hook_allowlist(run: RunContext) -> HookAllowlist:
    return HookAllowlist(run.home.root / FILE)


def hook_environment(run: RunContext) -> dict[str, str]:
    """Return the environment of hook programs: all variables except secrets."""
    return child_environment(run.env, run.settings.terminal.env_passthrough)


def find_problem(hook: ShellHook) -> str:
    """Return why an entry cannot be used, or ""."""
    if hook.event not in HOOKS:
        return f"There is no hook {hook.event!r}; `hermes hooks list` shows all hooks."
    try:
        hook.matches("")
        hash_files(hook.command)
    except (HermesError, OSError) as error:
        return str(error)
    return ""


def hooks_without_consent(run: RunContext) -> list[ShellHook]:
    """Return usable hooks that are not allowed in their current form."""
    consents = hook_allowlist(run)
    usable = (hook for hook in shell_hooks(run) if not find_problem(hook))
    return [hook for hook in usable if not is_allowed(hook, consents)]


def record_consent(run: RunContext, hook: ShellHook) -> None:
    run.home.ensure_folder(run.home.root)
    hook_allowlist(run).allow(hook.event, hook.command, at=run.world.clock.now())


def add_shell_hooks(run: RunContext, hooks: Hooks) -> None:
    """Add the allowed hooks; problems of the others become notices of the run."""
    if not run.settings.hooks:
        return
    consents, env = hook_allowlist(run), hook_environment(run)
    for hook in shell_hooks(run):
        if reason := _refusal(run, hook, consents):
            run.notices.append(reason)
            log.warning("hook skipped", extra={"why": reason})
            if not hook.fail_closed or hook.event not in HOOKS:
                continue
        callback = ShellCallback(hook, consents, env=env)
        hooks.add(
            hook.event,
            callback,
            owner=f"{OWNER}: {hook.command}",
            timeout=hook.seconds + EXTRA_SECONDS,
            fail_closed=hook.fail_closed,
        )


def _refusal(run: RunContext, hook: ShellHook, consents: HookAllowlist) -> str:
    if problem := find_problem(hook):
        return problem
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
        "allow it in a terminal or with --accept-hooks."
    )


State = Literal["allowed", "changed", "not allowed", "unusable"]


class HookRow(Value):
    """One hook of the settings."""

    event: str
    command: str
    matcher: str
    timeout: float
    fail_closed: bool
    state: State
    words: str = ""  # why an unusable hook cannot run


class HookTrial(Value):
    """The result of a test run; `answer` is the interpreted answer."""

    event: str
    command: str
    code: int | None
    seconds: float
    output: str
    errors: str
    answer: str


def hook_rows(context: RunContext) -> list[HookRow]:
    rows = []
    for hook in shell_hooks(context):
        problem = find_problem(hook)
        state: State = "unusable"
        try:
            if not problem:
                known = hook_allowlist(context).find(hook.event, hook.command)
                state = "not allowed"
                if known is not None:
                    state = "allowed" if known.files == hash_files(hook.command) else "changed"
        except HermesError as error:
            problem = str(error)
        rows.append(
            HookRow(
                event=hook.event,
                command=hook.command,
                matcher=hook.matcher,
                timeout=hook.seconds,
                fail_closed=hook.fail_closed,
                state=state,
                words=problem,
            )
        )
    return rows


def hooks_for_event(context: RunContext, event: str, tool: str) -> list[ShellHook]:
    """Return the hooks that run for this event and tool; raise NotFound if there are none."""
    if event not in HOOKS:
        near = tuple(difflib.get_close_matches(event, HOOKS, n=3, cutoff=0.5))
        raise NotFound(f"There is no hook {event!r}; `hermes hooks list` shows all hooks.", near)
    found = [
        hook for hook in shell_hooks(context) if hook.event == event and not find_problem(hook)
    ]
    matching = [hook for hook in found if not tool or hook.matches(tool)]
    if not matching:
        target = f" for {tool}" if tool else ""
        raise NotFound(f"No usable program is configured for {event}{target}; see docs/hooks.md.")
    return matching


async def try_hook(context: RunContext, hook: ShellHook, tool: str) -> HookTrial:
    """Run the hook like a session does, with sample data."""
    payload = _sample(hook.event, tool, str(Path.cwd()))
    try:
        outcome = await run_hook(hook, payload, env=hook_environment(context))
        answer = "nothing" if outcome.answer is None else encode(outcome.answer).decode()
        if outcome.code is None:
            answer = f"timed out after {hook.seconds:g} s"
    except (HermesError, OSError) as error:
        outcome = HookRun(code=None, output="", errors=str(error), seconds=0.0)
        answer = "cannot start"
    return HookTrial(
        event=hook.event,
        command=hook.command,
        code=outcome.code,
        seconds=round(outcome.seconds, 3),
        output=outcome.output,
        errors=outcome.errors,
        answer=answer,
    )


def revoke(context: RunContext, command: str) -> int:
    """Revoke the consents for a command; raise NotFound with the known commands."""
    consents = hook_allowlist(context)
    if not (gone := consents.revoke(command)):
        known = tuple(dict.fromkeys(each.command for each in consents.all()))
        raise NotFound(
            f"No consent exists for {command!r}; `hermes hooks list` shows all hooks.", known
        )
    return gone


def find_fault(hook: HookRow) -> str:
    """Return why this hook does not run, or ""."""
    if hook.state == "unusable":
        return hook.words
    if hook.state != "allowed":
        problem = (
            "has changed since it was allowed" if hook.state == "changed" else "was not allowed"
        )
        return f"{problem}; allow it in a chat or with --accept-hooks"
    program = split_command(hook.command)[0]
    if shutil.which(program) is None:
        why = "is not executable" if os.path.exists(program) else "does not exist"  # noqa: PTH110
        return f"{program} {why}"
    if not HOOKS[hook.event].fired:
        return f"{hook.event} is not fired by this version"
    return ""


def _sample(event: str, tool: str, cwd: str) -> JsonObject:
    facts: JsonObject = {
        "session_id": "test",
        "task_id": "test",
        "turn_id": "test",
        "platform": "cli",
        "model": "test",
        "cwd": cwd,
    }
    if "tool" in event or tool:
        facts |= {"tool_name": tool or "terminal", "args": {}, "tool_call_id": "call_test"}
    if event in ("post_tool_call", "transform_tool_result"):
        facts |= {"result": "a result", "status": "ok", "duration_ms": 1}
    if event == "transform_terminal_output":
        facts |= {"command": "true", "output": "an output", "returncode": 0}
    if event in ("pre_llm_call", "post_llm_call"):
        facts |= {"user_message": "a message", "conversation_history": []}
    if event == "transform_llm_output":
        facts |= {"response_text": "an answer"}
    return facts
