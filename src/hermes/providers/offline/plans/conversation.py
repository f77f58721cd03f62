"""Plans that need no workspace: talk, help, arithmetic, questions."""

from __future__ import annotations

from hermes.providers.offline.answers import (
    call_subject,
    closest,
    explain,
    not_understood,
    short_guide,
)
from hermes.providers.offline.arithmetic import evaluate, format_number
from hermes.providers.offline.plan import (
    Plan,
    StepOutcome,
    Steps,
    StepTask,
    checked_call,
    inline_code,
)

MAX_REMEMBERED = 10


def _sentence(key: str) -> Plan:
    def plan(task: StepTask) -> Steps:
        yield from ()
        return task.answer(key)

    return plan


greeting = _sentence("greeting")
thanks = _sentence("thanks")
goodbye = _sentence("goodbye")
how_are_you = _sentence("how_are_you")
who_are_you = _sentence("who_are_you")
get_model = _sentence("get_model")
never_mind = _sentence("never_mind")
agreement = _sentence("agreement")
nothing_before = _sentence("nothing_before")


def show_help(task: StepTask) -> Steps:
    yield from ()
    return StepOutcome(text=short_guide(task.say))


def how_to(task: StepTask) -> Steps:
    """Answers a "how do I" question with examples of matching requests."""
    yield from ()
    near = closest(task.say.language, task.slot("text"))
    if not near:
        return StepOutcome(text=not_understood(task.say, task.intent.words))
    examples = [inline_code(example) for kind in near for example in kind.examples[:2]]
    return StepOutcome(text=f"{task.say('how_to')}\n\n{task.say.bullets(examples)}")


def echo(task: StepTask) -> Steps:
    yield from ()
    return (
        StepOutcome(text=task.slot("text"))
        if task.slot("text").strip()
        else task.answer("nothing_said")
    )


def calculate(task: StepTask) -> Steps:
    yield from ()
    style = task.say.language.data.numbers_written
    text = task.slot("sum").strip().rstrip("?=").strip()
    if task.has("operation"):
        text = f"{task.slot('from')} {task.slot('operation')} {task.slot('upto')}"
    try:
        value = evaluate(text, style)
    except ZeroDivisionError:
        return task.fail("sum.zero", sum=inline_code(text))
    except OverflowError:
        return task.fail("sum.too_big", sum=inline_code(text))
    except ValueError:
        return task.fail("sum.undefined", sum=inline_code(text))
    return task.answer("sum", sum=text, value=format_number(value, style))


def ask_me(task: StepTask) -> Steps:
    choices = [task.slot(name).strip("?. ") for name in ("choice", "choice2") if task.has(name)]
    question = task.slot("question") or task.say("question.default")
    if len(choices) == 2:
        question = task.say("question.between", one=choices[0], two=choices[1])
    question = question if question.rstrip().endswith("?") else f"{question.rstrip('. ')}?"
    options: dict[str, object] = {"choices": choices} if choices else {}
    result = yield from checked_call("clarify", question=question, **options)
    answer = result.details.get("user_response")
    if answer is None:
        return task.answer("question.no_answer")
    return task.answer("question.answer", answer=inline_code(str(answer)))


def count_items(task: StepTask) -> Steps:
    yield from ()
    if not task.focus.items:
        return task.answer("nothing_before")
    return StepOutcome(text=task.say.count("items", task.focus.count))


def asked_before(task: StepTask) -> Steps:
    yield from ()
    asked = [exchange.request for exchange in task.earlier if exchange.request]
    if not asked:
        return task.answer("nothing_before")
    shown = [inline_code(text) for text in asked[-MAX_REMEMBERED:]]
    head = task.say.count("asked_before", len(shown))
    return StepOutcome(text=f"{head}\n\n{task.say.bullets(shown)}")


def repeat_answer(task: StepTask) -> Steps:
    yield from ()
    answer = next((e.answer for e in reversed(task.earlier) if e.answer), "")
    return StepOutcome(text=answer) if answer else task.answer("nothing_before")


def why_failed(task: StepTask) -> Steps:
    yield from ()
    if task.focus.failure is None:
        return task.answer("no_failure")
    failed_call, result = task.focus.failure
    return StepOutcome(
        text=explain(task.say, result, call_subject(failed_call.name, failed_call.arguments))
    )
