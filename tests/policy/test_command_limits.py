"""Every text gets a decision quickly; what exceeds a limit is asked about."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core.effects import Allow, Ask, Deny
from tests.policy.corpora import load
from tests.policy.decisions import decide, rules

# Seconds of this process's own work. Far above what is needed, far below a hang.
SOON = 5.0


def nested(script: str, depth: int) -> str:
    for _ in range(depth):
        script = "sh -c " + shlex.quote(script)
    return script


TOO_MUCH = {
    "a line of a megabyte": "echo " + "a" * 1_000_000,
    "deep substitutions": "echo " + "$(echo " * 300 + "x" + ")" * 300,
    "deep groups": "{ " * 20_000 + "ls;" + " }" * 20_000,
    "values that double": "a=xxxxxxxxxx;" + "a=$a$a;" * 60 + "echo $a",
    "values that double in others": "".join(f"a{i}=$a{i - 1}$a{i - 1};" for i in range(1, 60)),
    "braces in braces": "echo " + "{" * 3000 + "a,b" + "}" * 3000,
    "many commands": "ls;" * 30_000,
    "many pipes": "|".join(["cat"] * 20_000),
    "loops in loops": "".join(f"for i{i} in 1 2 3; do " for i in range(40)) + "ls" + ";done" * 40,
    "functions of functions": "".join(f"f{i}() {{ f{i - 1}; f{i - 1}; }};" for i in range(1, 60))
    + "f59",
    "shells in shells": nested("ls", 12),
    "eval of eval": "eval " * 3000 + "ls",
    "wrappers of wrappers": "env " * 20_000 + "ls",
    "open quotes": "'" * 99_999,
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_asked_about_soon(name: str) -> None:
    began = time.process_time()
    decision = decide(TOO_MUCH[name])
    assert time.process_time() - began < SOON
    assert isinstance(decision, Ask | Deny)


MUCH = {
    "ranges": "echo " + "{1..1000000}" * 3,
    "alternatives": "echo " + "{a,b}" * 30,
    "stars for names": "* " * 30 + "x",
    "long python": "python -c '" + "x=1\n" * 5_000 + "'",
    "patterns that go back": "x=" + "a" * 5_000 + "; echo ${x//a*a*a*a*b/}",
    "code full of open brackets": "lua -e '" + "[[" * 30_000 + "'",
    "code full of lists": "scala -e '" + '"a",' * 10_000 + "'",
    "orders full of patterns": "ex -c '" + ":g/" * 20_000 + "' x",
    "code full of texts": 'node -e \'require("child_process");' + '"a b",' * 3_000 + "'",
}


@pytest.mark.parametrize("name", MUCH)
def test_much_is_decided_soon(name: str) -> None:
    began = time.process_time()
    decide(MUCH[name])
    assert time.process_time() - began < SOON


PIECES = st.sampled_from(
    """$( ) ` " ' \\ { } { , .. ; & && | || < > << <<< >( <( (( )) [[ ]] if then fi for in do done
    case esac x=1 $x ${x} ${x:-y} ${x//a/b} $'\\x72m' rm -rf / ~ * ? eval sh -c echo cat xargs find
    sudo env A=b \n \t EOF function f() python -c node -e base64 -d @ % ! #""".split(" ")
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=60).map(" ".join))
def test_any_pile_of_shell_words_gets_a_decision(script: str) -> None:
    began = time.process_time()
    assert isinstance(decide(script), Allow | Ask | Deny)
    assert time.process_time() - began < SOON


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_any_text_gets_a_decision(script: str) -> None:
    assert isinstance(decide(script), Allow | Ask | Deny)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([each.script for each in load("dangerous") if each.category == "never"]),
    st.sampled_from(["sh -c {}", "eval {}", "sudo bash -c {}", "echo {} | sh", "bash <<< {}"]),
)
def test_wrapping_does_not_make_the_worst_harmless(script: str, wrapper: str) -> None:
    by = rules()
    assert isinstance(decide(wrapper.format(shlex.quote(script)), by), Ask | Deny)


def test_a_long_script_of_ordinary_work_is_decided_soon() -> None:
    lines = [
        f"echo step {i}; grep -n x{i} src/a.py | head; cp a.txt out/{i}.txt" for i in range(150)
    ]
    script = "\n".join(lines)
    assert len(script) > 9_000
    began = time.process_time()
    assert isinstance(decide(script), Allow)
    assert time.process_time() - began < 1.0
