"""Requests about programs, git, memory and numbers, as steps over ordinary tool calls."""

from __future__ import annotations

import shlex

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult
from hermes.providers.offline.arithmetic import evaluate, format_number
from hermes.providers.offline.patterns import parse_number
from hermes.providers.offline.steps import (
    Action,
    CallRequest,
    Slots,
    StepFailed,
    Steps,
    block,
    call,
    inline,
    run,
)


def answer(text: str) -> Action:
    """Return an action with a fixed answer."""

    def action(_: Slots) -> Steps:
        yield from ()
        return text

    return action


def report(script: str, text: str, empty: str) -> Action:
    """Return an action that runs a command; its output goes into the text in place of {}, or below
    it."""

    def action(_: Slots) -> Steps:
        found = yield from run(script)
        if empty and not found.strip():
            return empty
        return text.format(found.strip()) if "{}" in text else f"{text}\n\n{block(found)}"

    return action


def program_version(slots: Slots) -> Steps:
    program = slots["program"].casefold()
    program = "python3" if program == "python" else program
    found = yield from run(f"which {program}", accept=(0, 1))
    if not found.startswith("/"):
        return f"There is no program {inline(program)} on the PATH."
    version = (yield from run(f"{program} --version")).strip().splitlines()
    return f"{inline(found.strip())}: {version[0] if version else 'no version'}"


def run_command(slots: Slots) -> Steps:
    (command,) = slots.values()
    result = yield CallRequest("terminal", {"command": command})
    code = result.details.get("exit_code")
    if code is None:
        raise StepFailed(result.text.strip() or "The command did not run.")
    shown = block(result.text) if result.text.strip() else "It printed nothing."
    text = f"{inline(command)} ended with exit {code}.\n\n{shown}"
    if code:
        raise StepFailed(text)
    return text


def commit(slots: Slots) -> Steps:
    yield from run("git add -A")
    found = yield from run(f"git commit -m {shlex.quote(slots['quoted'])}")
    return f"Committed everything.\n\n{block(found)}"


def git_log(slots: Slots) -> Steps:
    count = parse_number(slots.get("number", "10"))
    found = yield from run(f"git log --oneline -n {count}")
    return f"The newest commits:\n\n{block(found)}"


def calculate(slots: Slots) -> Steps:
    yield from ()
    text = slots["sum"].strip().rstrip("?=").strip()
    try:
        value = evaluate(text)
    except ZeroDivisionError:
        raise StepFailed(f"{inline(text)} divides by zero.") from None
    except (OverflowError, ValueError):
        raise StepFailed(f"{inline(text)} has no result that I can write down.") from None
    return f"{text} = {format_number(value or 0)}"


def echo(slots: Slots) -> Steps:
    yield from ()
    return slots["text"]


def remember(slots: Slots) -> Steps:
    (fact,) = slots.values()
    result = yield from call("memory", action="add", target="memory", content=fact)
    if result.details.get("held"):
        return f"“{fact}” waits for approval; `hermes memory pending` shows it."
    return f"I will remember: {fact}"


def search_sessions(slots: Slots) -> Steps:
    text = slots.get("quoted") or slots["text"]
    result = yield from call("session_search", query=text)
    if not result.details.get("sessions"):
        return f"No earlier conversation mentions {inline(text)}."
    return f"Earlier conversations that mention {inline(text)}:\n\n{block(result.text)}"


def show_todos(_: Slots) -> Steps:
    return _todos((yield from call("todo")))


def add_todo(slots: Slots) -> Steps:
    taken = {str(item.get("id")) for item in _items((yield from call("todo")))}
    free = next(str(n) for n in range(1, len(taken) + 2) if str(n) not in taken)
    item = {"id": free, "content": slots.get("rest") or slots["quoted"], "status": "pending"}
    return _todos((yield from call("todo", todos=[item], merge=True)))


def finish_todo(slots: Slots) -> Steps:
    items = _items((yield from call("todo")))
    number = parse_number(slots["number"])
    if not 0 < number <= len(items):
        raise StepFailed(f"The to-do list has no item {number}.")
    done = {**items[number - 1], "status": "completed"}
    return _todos((yield from call("todo", todos=[done], merge=True)))


def clear_todos(_: Slots) -> Steps:
    yield from call("todo", todos=[], merge=False)
    return "The to-do list is empty."


def _items(result: ToolResult) -> list[JsonObject]:
    items = result.details.get("todos")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _todos(result: ToolResult) -> str:
    items = _items(result)
    if not items:
        return "The to-do list is empty."
    return "\n".join(
        f"{number}. {'[x]' if item.get('status') == 'completed' else '[ ]'} {item.get('content')}"
        for number, item in enumerate(items, 1)
    )
