"""The tasks of one call: their form, their limits, and the tools of their child sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.delegation_settings import DelegationSettings
from hermes.core.errors import ToolError, UsageError
from hermes.tools.toolbox import SEARCHING, resolve_toolsets, toolsets_by_name

LEAF, ORCHESTRATOR = "leaf", "orchestrator"
DELEGATE = "delegate_task"
MAX_IMAGES = 8
# Toolsets and tools that a child session never has.
BLOCKED_TOOLSETS = ("clarify", "cronjob", "honcho", "memory", "user_model")
BLOCKED_TOOLS = (DELEGATE, "send_message", "execute_code", "plan", "mixture_of_agents")
# What a child session has unless its task names toolsets, in this order, as far as it fits.
FIRST_TOOLS = (
    *SEARCHING,
    "terminal",
    "read_file",
    "patch",
    "write_file",
    "search_files",
    "process",
    "todo",
    "web_search",
    "web_extract",
    "skill_view",
    "session_search",
)
TOOL_TOKENS = 1_250


class Task(Value, forbid_unknown_fields=True):
    """One task of a call."""

    goal: str
    context: str = ""
    toolsets: tuple[str, ...] = ()
    # "leaf" unless it is "orchestrator".
    role: str = ""
    output_schema: JsonObject | None = None
    images: tuple[str, ...] = ()


class CheckedTasks(NamedTuple):
    """Tasks that may start, and notes for the model about changes to them."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()


def parse_tasks(tasks: Sequence[JsonObject]) -> tuple[Task, ...]:
    """Convert what the model wrote; raise ToolError that says what is wrong."""
    try:
        return tuple(convert(Task, each) for each in tasks)
    except DecodeError as error:
        names = ", ".join(Task.__struct_fields__)
        raise ToolError(
            f"A task cannot be read ({error}); its fields are {names}. Nothing was started."
        ) from error


def check_tasks(
    goal: str, tasks: Sequence[Task], shared: Task, settings: DelegationSettings, depth: int
) -> CheckedTasks:
    """Return the tasks of a call by a session at this depth. Raise ToolError when the call must not
    start anything. `shared` holds the options that apply to tasks without their own."""
    if depth >= max(1, settings.max_spawn_depth):
        raise ToolError(
            f"This session is {depth} level(s) deep and may not delegate "
            "(delegation.max_spawn_depth); do the work yourself."
        )
    if bool(goal.strip()) == bool(tasks):
        raise ToolError("Give either `goal` for one task or `tasks` for several.")
    most = settings.max_concurrent_children
    if len(tasks) > most:
        raise ToolError(
            f"{len(tasks)} tasks are more than the {most} that may run at once "
            "(delegation.max_concurrent_children); nothing was started."
        )
    wanted = [_with_shared(each, shared) for each in tasks] or [replace(shared, goal=goal)]
    for each in wanted:
        _check(each)
    may_delegate = settings.orchestrator_enabled and depth + 1 < settings.max_spawn_depth
    notes: list[str] = []
    for index, each in enumerate(wanted):
        if each.role == ORCHESTRATOR and not may_delegate:
            wanted[index] = replace(each, role=LEAF)
            notes.append(f"Task {index} runs as a leaf: it may not delegate further.")
    return CheckedTasks(tuple(wanted), tuple(notes))


def _with_shared(task: Task, shared: Task) -> Task:
    return replace(
        task,
        context=task.context or shared.context,
        toolsets=task.toolsets or shared.toolsets,
        role=task.role or shared.role,
    )


def _check(task: Task) -> None:
    if task.role not in ("", LEAF, ORCHESTRATOR):
        raise ToolError(f"There is no role {task.role!r}; use {LEAF} or {ORCHESTRATOR}.")
    if not task.goal.strip():
        raise ToolError("Every task needs a goal; nothing was started.")
    if len(task.images) > MAX_IMAGES:
        raise ToolError(f"A task has at most {MAX_IMAGES} images; nothing was started.")


def blocked_tools() -> frozenset[str]:
    known = toolsets_by_name()
    return frozenset(
        (*BLOCKED_TOOLS, *(name for each in BLOCKED_TOOLSETS for name in known.get(each, ())))
    )


def child_tools(
    task: Task,
    own: Sequence[str],
    *,
    searches: bool,
    size: Callable[[Iterable[str]], int],
) -> tuple[str, ...]:
    """Return the tools of a child session: those of the parent (`own`), without blocked ones. A
    task that names toolsets gets their tools, without the tool search, which would bypass the
    selection; another one gets the most important tools, with the tool search if it `searches`.
    `size` returns the tokens of tools."""
    allowed = [name for name in own if name not in blocked_tools()]
    if task.toolsets:
        try:
            chosen = set(resolve_toolsets(task.toolsets)) - set(SEARCHING)
        except UsageError as error:
            raise ToolError(f"{error} Nothing was started.") from error
        names = [name for name in allowed if name in chosen]
    else:
        names, left = [], TOOL_TOKENS
        for name in (*FIRST_TOOLS, *(each for each in allowed if each not in FIRST_TOOLS)):
            if name not in allowed or (name in SEARCHING and not searches):
                continue
            if (tokens := size((name,))) <= left:
                names.append(name)
                left -= tokens
    if task.role == ORCHESTRATOR and DELEGATE in own:
        names.append(DELEGATE)
    return tuple(sorted(names))
