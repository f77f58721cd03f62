"""The parser against bash itself: whatever bash runs, the parser has seen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.policy.call import Call
from hermes.policy.findings import Level
from hermes.policy.path_effects import Paths
from hermes.policy.programs.catalogue import check_call
from hermes.policy.shell.parser import parse
from hermes.policy.shell.state import NOTHING, SOME, UNKNOWN, State, Stream
from hermes.policy.shell.tree import Unclear
from hermes.policy.walk import ScriptWalk

Words = tuple[str, ...]
# Whatever is no builtin is written down, not run.
# In one go, because the commands of a pipe write at the same time.
RECORDER = r"""set -f
command_not_found_handle() {
    local words
    printf -v words "%s\x1e" "$@"
    printf "%s\x1d" "$words" >> "$RECORD"
}
"""
SCRIPTS = r"""
rm -rf x
r''m -rf "a b" 'c d' e\ f
r\⏎m x
"r"m $'\x61\n' "a\"b" 'a"b'
{rm,-rf,/opt}
x{a,b}y{1..3} z
p {a..e} {3..1} {a,} {x} a{b,c{d,e}}f
p ${u:-a b} "${u:-a b}" ${u-x} ${u:+a} "${u:+b}" c
x=rm; $x a; x=ls $x b; $x c
a='p q r'; $a; "$a"
IFS=,; a='p,q,r'; $a
p $(echo a b) "$(echo a b)" `echo c`
prog${IFS}a${IFS}b
if tru; then a; elif b; then c; else d; fi
for i in 1 2 3; do p $i; done
for i in a "b c" $(echo d e); do p "$i"; done
while read l; do p "$l"; break; done <<< "x y"
case abc in a*) p 1;; *) p 2;; esac
f(){ p "$1" "$2"; }; f a 'b c'
function g { p "$@"; }; g 1 2
(p a; p b) ; { p c; }
p a | q b | r c
p a && q b || r c
! p a
p <<EOF⏎x $HOME⏎EOF⏎q after
cat <<'A' <<B⏎1⏎A⏎2⏎B⏎q
cat <<-E⏎	x⏎	E⏎q
cat <<E"O"F⏎$x⏎EOF⏎q z
p a # comment ; q b
p a#b 'c#d' #x
p "a$(q "b c")d"
p "$(q `r s`)"
p "`echo \`echo a\``"
eval 'p a; q "b c"'
eval p "'a b'"
p $((1+2)) a $(( $(echo 2) + 1 ))
p a >/dev/null 2>&1 b
>/dev/null p a
p \⏎ a \⏎ b
p 'a\⏎b' "c\⏎d"
p \\⏎q x
p "${HOME}/x" ~/y ~ a~b '~'
set -- a 'b c'; p "$@"; p $*; p $1 "$2"
arr=(a 'b c' d); p "${arr[@]}"; p ${arr[1]} "${arr[0]}"
declare -a c=(p x y); "${c[@]}"
x=abc.txt; p ${x%.txt} ${x#a} ${x/b/X} ${x^^} ${x:1:2}
x=a; x+=b; p $x
p $'a\tb' $"x"
[[ a == a && -n "$(p x)" ]] && q y
((1+1)) && p x
p <(q x)
p a & q b; wait
time p x
p 'multi⏎line' "and⏎more"; q
command p a; builtin eval 'p b'
source /dev/null; p a
printf -v v 'p q'; $v
declare z='p 1'; $z
export Z='p 2'; $Z
read a b <<< 'p q'; $a x $b
IFS=: read a b <<< 'p:q'; $a $b
p "$(printf '%s-%s' a b)" "$(echo -e 'x\ty')"
p "" '' a
p $u "$u" a
p "a b"c'd e'f\ g
trap 'p x' EXIT; q
p a |& q b
until true; do p; done; q
p --opt="a b" --x='c'd
p a=b c=d; X=1 Y=2 p e
x='a;b|c&d'; p $x
p <<< "a" <<E⏎x⏎E
work() { work() { p; }; work; }; work
""".strip("\n").split("\n")


def run_by_bash(script: str, folder: Path) -> list[Words]:
    """The commands that bash would start, in their order."""
    record = folder / "record"
    record.write_bytes(b"")
    subprocess.run(
        ["/bin/bash", "-c", RECORDER + script],
        env={"PATH": "/nonexistent", "HOME": "/home/p", "RECORD": str(record)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    text = record.read_bytes().decode("utf-8", "replace")
    return [tuple(each.split("\x1e")[:-1]) for each in text.split("\x1d")[:-1]]


def seen(script: str) -> tuple[list[Words], bool]:
    """The commands that the walk comes by, and whether it has doubts."""
    found: list[Words] = []

    def write_down(call: Call) -> Stream:
        found.append((call.name, *call.arguments))
        return NOTHING

    def check(call: Call) -> Stream | None:
        return check_call(call) if "builtin" in call.record.flags else write_down(call)

    walk = ScriptWalk(Paths("/w", "/home/p", "/s"), check=check)
    state = State("/w", {"HOME": ("/home/p",), "IFS": (" \t\n",)})
    walk.run(script, state)
    return found, any(each.level is Level.ASKED for each in walk.findings)


def fits(real: Words, told: Words) -> bool:
    """What was told stands for what was run; unknown parts stand for anything."""
    # Numbers are not worked out.
    text, pattern = _numbers("\0".join(real)), _numbers("\0".join(told))
    parts = re.split(f"[{UNKNOWN}{SOME}]", pattern)
    # An unknown word may also be no word at all.
    whole = ".*".join(re.escape(part) for part in parts).replace("\0.*", "(?:\0.*)?")
    return bool(re.fullmatch(whole, text, re.DOTALL))


def _numbers(text: str) -> str:
    return re.sub(r"\d+", "7", text)


def unseen(script: str, folder: Path) -> list[Words]:
    told, doubted = seen(script)
    return [
        real
        for real in run_by_bash(script, folder)
        if not doubted and not any(fits(real, each) for each in told)
    ]


@pytest.mark.parametrize("line", SCRIPTS)
def test_what_bash_runs_has_been_seen(line: str, tmp_path: Path) -> None:
    script = line.replace("⏎", "\n")
    assert unseen(script, tmp_path) == []
    assert run_by_bash(script, tmp_path) != []


# No functions: bash really runs the builtins of these, and one that starts itself has no end.
SIGNS = r"""
p|q|a b|'|"|\|$x|${x}|$(p 1)|`q 2`|{a,b}|x=p|;|&&| |(|)|{ |; }|if |; then |; fi|#|&|=|!
for i in 1 2; do |; done|$i|>/dev/null |<<< w |eval |$'\x70'|case p in *) |;; esac|[[ p ]]|((1))
$((1))| ~/x
"""
ATOMS = st.sampled_from(
    [*SIGNS.strip("\n").replace("\n", "|").split("|"), "|", "\n", "<<E\n", "\nE\n", "\\\n"]
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(script=st.lists(ATOMS, min_size=2, max_size=9).map("".join))
def test_no_mix_of_signs_hides_a_command_from_the_walk(script: str, tmp_path: Path) -> None:
    try:
        parse(script)
    except Unclear:
        return
    assert unseen(script, tmp_path) == []


@given(st.text(max_size=60))
def test_any_text_is_read_or_called_unclear(text: str) -> None:
    try:
        parse(text)
    except Unclear as unclear:
        assert str(unclear)


@pytest.mark.parametrize(
    "script",
    [
        "$(" * 200 + ")" * 200,
        "(" * 500,
        "{a,b}" * 40,
        "x=" + "${x:-" * 100 + "}" * 100,
        "eval " * 300 + "ls",
        "for a in 1 2; do " * 30 + "x=$x$a; ls $x" + "; done" * 30,
        "f() { f; f; }; f",
        "a=1\n" * 5000,
        "ls " + "x" * 200_000,
        "{1..99999999}",
        "bash -c '" * 3,
    ],
)
def test_texts_made_to_exhaust_are_answered(script: str) -> None:
    def check(call: Call) -> Stream | None:
        return check_call(call) if "builtin" in call.record.flags else None

    walk = ScriptWalk(Paths("/w", "/home/p", "/s"), check=check)
    try:
        walk.run(script, State("/w", {}))
    except Unclear as unclear:
        assert str(unclear)
    assert len(walk.commands) < 10_000
