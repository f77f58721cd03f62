"""Wrapping, quoting or hiding a command never makes the decision milder."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.rules import SessionPolicy
from hermes.policy.shell.parser import parse
from hermes.policy.shell.tree import Unclear
from tests.policy.corpora import load
from tests.policy.decisions import decide, rules

Wrapper = Callable[[str], str]


def _in(template: str) -> Wrapper:
    """`Q` is the script as one quoted word, `S` the script as it is."""

    def wrap(script: str) -> str:
        parts = template.split("Q")
        return shlex.quote(script).join(part.replace("S", script) for part in parts)

    return wrap


def _unmarked(wrapper: Wrapper) -> Wrapper:
    """For wrappers that put something else in the place of `{}`."""
    return lambda script: WRAPPERS["shell"](script) if "{}" in script else wrapper(script)


def _here_document(script: str) -> str:
    end = f"END {len(script)}"  # another one each time, when nested
    return f"bash <<'{end}'\n{script}\n{end}"


def _encoded(script: str) -> str:
    return f"echo {base64.b64encode(script.encode()).decode()} | base64 -d | sh"


def _python(script: str) -> str:
    return "python3 -c " + shlex.quote(f"import os; os.system({script!r})")


def _spelled(script: str) -> str:
    return "bash -c $'" + "".join(f"\\x{byte:02x}" for byte in script.encode("latin-1")) + "'"


WRAPPERS: dict[str, Wrapper] = {
    "shell": _in("bash -c Q"),
    "other shell": _in("sh -ec Q"),
    "eval": _in("eval Q"),
    "subshell": _in("(\nS\n)"),
    "group": _in("{\nS\n}"),
    "condition": _in("if true; then\nS\nfi"),
    "loop": _in("for i in 1 2; do\nS\ndone"),
    "case": _in("case x in *)\nS\n;; esac"),
    "after": _in("ls && echo ok\nS"),
    "before": _in("S\nls"),
    "pipe": _in("{\nS\n} | cat"),
    "substitution": _in('echo "$(\nS\n)"'),
    "assignment": _in("x=$(\nS\n)"),
    "process": _in("cat <(\nS\n)"),
    "function": _in("work() {\nS\n}; work"),
    "function left behind": _in("work() {\nS\n}"),
    "variable": _in('x=Q; eval "$x"'),
    "input": _in("printf %s Q | bash"),
    "here string": _in("bash <<< Q"),
    "here document": _here_document,
    "file": _in("printf '%s\\n' Q > run.sh; sh run.sh"),
    "trap": _in("trap Q EXIT"),
    "env": _in("env A=1 nice -n 5 bash -c Q"),
    "timeout": _in("timeout 5 nohup bash -c Q"),
    "sudo": _in("sudo -u root sh -c Q"),
    "su": _in("su -c Q"),
    "xargs": _in("echo x | xargs -I@@ bash -c Q"),
    "find": _unmarked(_in("find . -maxdepth 0 -exec bash -c Q \\;")),
    "watch": _in("watch Q"),
    "script": _in("script -qc Q /dev/null"),
    "full path": _in("/usr/bin/env /bin/bash -c Q"),
    "encoded": _encoded,
    "python": _python,
}


def severity(decision: Decision) -> int:
    match decision:
        case Allow():
            return 0
        case Ask():
            return 1
        case Deny(hardline=hardline):
            return 3 if hardline else 2


def readable(script: str) -> bool:
    try:
        parse(script)
    except Unclear:
        return False
    # A backslash at the end would join the line that follows.
    return not script.endswith("\\")


BY = rules()


@cache
def samples() -> tuple[str, ...]:
    known = (each.script for name in ("dangerous", "dangerous_held") for each in load(name))
    scripts = (script for script in known if "$0" not in script and "$@" not in script)
    return tuple(script for script in scripts if readable(script))


@cache
def worst() -> tuple[str, ...]:
    return tuple(script for script in samples() if severity(decide(script, BY)) == 3)


# Found when they are wanted: whoever only lists the tests does not wait for them.
SAMPLES = st.deferred(lambda: st.sampled_from(samples()))
SPELLED = st.deferred(lambda: st.sampled_from([each for each in samples() if each.isascii()]))
WORST = st.deferred(lambda: st.sampled_from(worst()))


# Each wrapper takes a part of the scripts, another one than its neighbours; all on request.
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_wrapper_keeps_what_is_never_run(step: int) -> None:
    for number, (name, wrapper) in enumerate(WRAPPERS.items()):
        chosen = worst()[number % step :: step]
        milder = [script for script in chosen if severity(decide(wrapper(script), BY)) < 3]
        assert milder == [], name


@settings(max_examples=150, deadline=None)
@given(
    SAMPLES,
    st.lists(st.sampled_from(sorted(WRAPPERS)), min_size=1, max_size=3),
)
def test_no_nesting_of_wrappers_makes_a_decision_milder(script: str, names: list[str]) -> None:
    wrapped = script
    for name in names:
        wrapped = WRAPPERS[name](wrapped)
    assert severity(decide(wrapped, BY)) >= severity(decide(script, BY)), wrapped


@settings(max_examples=100, deadline=None)
@given(SPELLED)
def test_a_spelled_out_script_is_no_milder(script: str) -> None:
    assert severity(decide(_spelled(script), BY)) >= severity(decide(script, BY))


@settings(max_examples=100, deadline=None)
@given(WORST, st.data())
def test_quotes_inside_a_plain_command_change_nothing(script: str, data: st.DataObject) -> None:
    if not script.replace(" ", "").replace("-", "").replace("/", "").isalnum():
        return
    place = data.draw(st.integers(min_value=1, max_value=len(script) - 1))
    if " " in script[place - 1 : place + 1]:
        return
    sign = data.draw(st.sampled_from(["''", '""', "\\\n", "$''", "${nothing:+x}"]))
    quoted = script[:place] + sign + script[place:]
    assert severity(decide(quoted, BY)) == 3, quoted


def _levels(by: SessionPolicy, script: str) -> int:
    return severity(decide(script, by))


@settings(max_examples=100, deadline=None)
@given(SAMPLES, st.sampled_from(["ls; ", "true && ", "cd . ; ", "UNUSED=1; "]))
def test_harmless_company_does_not_help(script: str, company: str) -> None:
    assert _levels(BY, company + script) >= _levels(BY, script)
