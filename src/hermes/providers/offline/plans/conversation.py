"""Plans that need no workspace: talk, help, arithmetic, questions."""

from __future__ import annotations

from hermes.providers.offline.arithmetic import work_out, written
from hermes.providers.offline.failures import explain, subject
from hermes.providers.offline.guide import short_guide
from hermes.providers.offline.plan import Outcome, Plan, Steps, Task, checked_call
from hermes.providers.offline.suggestions import closest, not_understood
from hermes.providers.offline.voice import code

MAX_REMEMBERED = 10


def _sentence(key: str) -> Plan:
    def plan(task: Task) -> Steps:
        yield from ()
        return task.done(key)

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


def show_help(task: Task) -> Steps:
    yield from ()
    return Outcome(text=short_guide(task.say))


def how_to(task: Task) -> Steps:
    """Answers a "how do I" question with examples of matching requests."""
    yield from ()
    near = closest(task.say.language, task.slot("text"))
    if not near:
        return Outcome(text=not_understood(task.say, task.intent.words))
    examples = [code(example) for kind in near for example in kind.examples[:2]]
    return Outcome(text=f"{task.say('how_to')}\n\n{task.say.bullets(examples)}")


def echo(task: Task) -> Steps:
    yield from ()
    return (
        Outcome(text=task.slot("text")) if task.slot("text").strip() else task.done("nothing_said")
    )


def calculate(task: Task) -> Steps:
    yield from ()
    style = task.say.language.data.numbers_written
    text = task.slot("sum").strip().rstrip("?=").strip()
    if task.has("operation"):
        text = f"{task.slot('from')} {task.slot('operation')} {task.slot('upto')}"
    try:
        value = work_out(text, style)
    except ZeroDivisionError:
        return task.failed("sum.zero", sum=code(text))
    except OverflowError:
        return task.failed("sum.too_big", sum=code(text))
    except ValueError:
        return task.failed("sum.undefined", sum=code(text))
    return task.done("sum", sum=text, value=written(value, style))


def ask_me(task: Task) -> Steps:
    choices = [task.slot(name).strip("?. ") for name in ("choice", "choice2") if task.has(name)]
    question = task.slot("question") or task.say("question.default")
    if len(choices) == 2:
        question = task.say("question.between", one=choices[0], two=choices[1])
    question = question if question.rstrip().endswith("?") else f"{question.rstrip('. ')}?"
    options: dict[str, object] = {"choices": choices} if choices else {}
    result = yield from checked_call("clarify", question=question, **options)
    answer = result.details.get("user_response")
    if answer is None:
        return task.done("question.no_answer")
    return task.done("question.answer", answer=code(str(answer)))


def count_items(task: Task) -> Steps:
    yield from ()
    if not task.focus.items:
        return task.done("nothing_before")
    return Outcome(text=task.say.count("items", task.focus.count))


def asked_before(task: Task) -> Steps:
    yield from ()
    asked = [exchange.asked for exchange in task.earlier if exchange.asked]
    if not asked:
        return task.done("nothing_before")
    shown = [code(text) for text in asked[-MAX_REMEMBERED:]]
    head = task.say.count("asked_before", len(shown))
    return Outcome(text=f"{head}\n\n{task.say.bullets(shown)}")


def repeat_answer(task: Task) -> Steps:
    yield from ()
    answer = next((e.answer for e in reversed(task.earlier) if e.answer), "")
    return Outcome(text=answer) if answer else task.done("nothing_before")


def why_failed(task: Task) -> Steps:
    yield from ()
    if task.focus.failure is None:
        return task.done("no_failure")
    failed_call, result = task.focus.failure
    return Outcome(text=explain(task.say, result, subject(failed_call.name, failed_call.arguments)))
