from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.policy.shell.simple_commands import SimpleCommand, executed, simple_commands
from hermes.workspaces.script_advice import (
    explain_exit_code,
    find_objection,
    pipes_password_to_sudo,
)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("nohup make", "nohup"),
        ("sudo nohup make", "nohup"),
        ("if true; then setsid x; fi", "setsid"),
        ("x & disown", "disown"),
        ("A=1 /usr/bin/setsid x", "setsid"),
        ("sleep 5 &", "'&' at the end"),
        ("sleep 5 & # for a while", "'&' at the end"),
        ("(server &)", "'&' at the end"),
        ("foo > /dev/null 2>&1 &\n", "'&' at the end"),
        ("python3 -m http.server 8000", "does not end"),
        ("cd web && npm run dev", "does not end"),
        ("npm start -- --port 3", "does not end"),
        ("npx vite", "does not end"),
        ("uv run uvicorn app:app --reload", "does not end"),
        ("python manage.py runserver 0.0.0.0:80", "does not end"),
        ("flask --app x run", "does not end"),
        ("tail -f /var/log/x", "does not end"),
        ("watch -n1 ls", "does not end"),
        ("docker compose -f dev.yml up", "does not end"),
        ("php -S localhost:80", "does not end"),
        ("npx tsc --watch", "does not end"),
    ],
)
def test_what_belongs_in_the_background_is_refused(script: str, words: str) -> None:
    advice = find_objection(script)
    assert advice
    assert words in advice
    assert "background=true" in advice


@pytest.mark.parametrize(
    "script",
    [
        "echo nohup",
        "git commit -m 'run nohup x &'",
        "sleep 1 & wait",
        "a && b",
        "a &> log",
        "a 2>&1 | tail -5",
        "cat <<'END' > run.sh\nnohup server &\nEND",
        "cat <<-END\n\tnpm run dev\n\tEND\ntrue",
        'echo "$(cat <<E\n&\nE\n)"',
        "# npm run dev &",
        "python3 -m http.server & sleep 1; curl localhost:8000; kill %1",
        "timeout 5 npm start",
        "npm run build",
        "npm test",
        "vite build",
        "uvicorn --help",
        "docker compose up -d",
        "tail -n 20 x",
        "gunicorn -D app",
        "grep -r 'npm run dev' docs",
        "which uvicorn",
        "echo a#b & wait",
        "[ -f x ] && echo yes",
        "",
    ],
)
def test_ordinary_commands_pass(script: str) -> None:
    assert find_objection(script) is None


@pytest.mark.parametrize(
    ("script", "feeds"),
    [
        ("echo pw | sudo -S ls", True),
        ("sudo -kS -u root ls", True),
        ("echo pw | env A=1 sudo --stdin ls", True),
        ("sudo -u S ls -S", False),
        ("sudo sort -S 1G x", False),
        ("echo 'sudo -S'", False),
        ("grep sudo -S x", False),
    ],
)
def test_a_password_for_sudo_is_seen(script: str, feeds: bool) -> None:
    assert pipes_password_to_sudo(script) is feeds


def test_scripts_come_apart_at_their_operators() -> None:
    script = "A=1 x 'a b' \"c $d\" >out 2>&1 | y\\ z && { w; } || (v) & u"
    assert simple_commands(script) == [
        SimpleCommand(words=("A=1", "x", "a b", "c ${d}"), end="|", written=("out", "1")),
        SimpleCommand(words=("y z",), end="&&"),
        SimpleCommand(words=("w",), end=";"),
        SimpleCommand(words=("v",), end="&"),
        SimpleCommand(words=("u",)),
    ]


def test_wrappers_are_taken_off() -> None:
    assert executed(("sudo", "-u", "me", "env", "-i", "A=1", "/bin/ls", "-l")) == ("ls", "-l")
    assert executed(("A=1",)) == ()


@given(st.text(alphabet="ab \"'\\$(){}<>&|;#\n`-=!", max_size=40))
def test_any_text_can_be_read(script: str) -> None:
    commands = simple_commands(script)
    assert all(command.words or command.written for command in commands)
    find_objection(script)
    pipes_password_to_sudo(script)
    explain_exit_code(script, 1)


@pytest.mark.parametrize(
    ("script", "code", "words", "harmless"),
    [
        ("grep x y", 1, "grep found nothing", True),
        ("cd a; cat b | rg x", 1, "rg found nothing", True),
        ("diff a b", 1, "the files differ", True),
        ("[ -e x ]", 1, "the condition is false", True),
        ("python -m pytest -x", 5, "no tests were found", False),
        ("curl https://x", 6, "the host name was not found", False),
        ("nosuch", 127, "command not found", False),
        ("./a", 139, "crashed: segmentation fault", False),
        ("./a", 143, "ended by SIGTERM", False),
    ],
)
def test_exit_codes_that_say_more(script: str, code: int, words: str, harmless: bool) -> None:
    found = explain_exit_code(script, code)
    assert found
    assert (found.meaning, found.harmless) == (words, harmless)


@pytest.mark.parametrize(
    ("script", "code"), [("make && grep x y", 1), ("./a", 1), ("grep x", 2), ("", 1), ("./a", 255)]
)
def test_codes_without_a_certain_meaning(script: str, code: int) -> None:
    assert explain_exit_code(script, code) is None
