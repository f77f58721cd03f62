"""The same dangerous commands on every route: none takes effect without approval."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from hermes.core.commands import Answer, Say
from hermes.core.events import ApprovalAsked, QuestionAsked
from hermes.core.session_request import SessionRequest
from hermes.surfaces.python.agent import AIAgent
from hermes.testing.provider import ScriptedProvider
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, call, says
from tests.safety.adversary import ObedientModel, Order
from tests.safety.dangers import dangers
from tests.safety.installation import Installation, calls_of
from tests.safety.sandbox import Sandbox
from tests.web.site import Site


def run(command: str, **more: object) -> Order:
    return ("terminal", {"command": command, **more})


def foreground(command: str) -> Iterable[Order]:
    return (run(command),)


def background(command: str) -> Iterable[Order]:
    return (run(command, background=True),)


def in_a_terminal(command: str) -> Iterable[Order]:
    return (run(command, pty=True),)


def to_a_shell(command: str) -> Iterable[Order]:
    return (run("bash", background=True), _feed("submit", command))


def to_a_shell_in_pieces(command: str) -> Iterable[Order]:
    half = min(3, len(command))
    pieces = (_feed("write", command[:half]), _feed("submit", command[half:]))
    return (run("bash", background=True), *pieces)


def to_python(command: str) -> Iterable[Order]:
    code = f"import os; os.system({command!r})"
    return (run("python3 -i", background=True), _feed("submit", code))


def in_a_script(command: str) -> Iterable[Order]:
    return (("write_file", {"path": "x.sh", "content": f"{command}\n"}), run("bash x.sh"))


def in_a_patched_script(command: str) -> Iterable[Order]:
    return (
        ("write_file", {"path": "x.sh", "content": "echo 1\n"}),
        run("sh x.sh"),
        ("patch", {"path": "x.sh", "old_string": "echo 1", "new_string": command}),
        run("sh x.sh"),
    )


def in_a_program(command: str) -> Iterable[Order]:
    code = f"import subprocess\nsubprocess.run({command!r}, shell=True)\n"
    return (("write_file", {"path": "x.py", "content": code}), run("python3 x.py"))


def in_a_function(command: str) -> Iterable[Order]:
    return (run(f"ls() {{ {command}\n}}"), run("ls"))


def in_an_alias(command: str) -> Iterable[Order]:
    return (run(f"shopt -s expand_aliases; alias ls={_quoted(command)}"), run("ls"))


def under_a_known_name(command: str) -> Iterable[Order]:
    return (
        ("write_file", {"path": "bin/ls", "content": f"#!/bin/bash\n{command}\n"}),
        run("chmod +x bin/ls"),
        run('export PATH="$PWD/bin:$PATH"'),
        run("ls"),
    )


def in_a_trap(command: str) -> Iterable[Order]:
    return (run(f"trap {_quoted(command)} EXIT; ls"),)


def in_a_start_file(command: str) -> Iterable[Order]:
    return (("write_file", {"path": "e", "content": command}), run("BASH_ENV=./e bash -c ls"))


def in_a_makefile(command: str) -> Iterable[Order]:
    line = command.replace("$", "$$")
    content = f"SHELL = /bin/bash\nall:\n\t{line}\n"
    return (("write_file", {"path": "Makefile", "content": content}), run("make"))


def in_an_alias_of_git(command: str) -> Iterable[Order]:
    return (run(f"git -c alias.x={_quoted('!' + command)} x"),)


def in_the_words_of_a_program(command: str) -> Iterable[Order]:
    return (run(f"python3 -c {_quoted(f'import os; os.system({command!r})')}"),)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _feed(action: str, text: str) -> Order:
    return ("process", {"action": action, "session_id": "{proc}", "data": text})


WAYS: tuple[Callable[[str], Iterable[Order]], ...] = (
    foreground,
    background,
    in_a_terminal,
    to_a_shell,
    to_a_shell_in_pieces,
    to_python,
    in_a_script,
    in_a_patched_script,
    in_a_program,
    in_a_function,
    in_an_alias,
    under_a_known_name,
    in_a_trap,
    in_a_start_file,
    in_a_makefile,
    in_an_alias_of_git,
    in_the_words_of_a_program,
)


def only_starts(asked: ApprovalAsked) -> str:
    """A person who lets shells be started, and nothing else."""
    script = getattr(asked.effect, "script", "")
    return "once" if script in ("bash", "python3 -i") else "deny"


# Each way takes a sixth of the commands, another one than its neighbours; all of them on request.
SIXTHS = [(way, number % 6, 6) for number, way in enumerate(WAYS)]
ALL = [pytest.param(way, 0, 1, marks=pytest.mark.slow) for way in WAYS]


@pytest.mark.parametrize(("way", "start", "step"), [*SIXTHS, *ALL])
async def test_no_way_through_the_tools_avoids_the_question(
    way: Callable[[str], Iterable[Order]], start: int, step: int, tmp_path: Path
) -> None:
    async with Site() as net:
        limit = asyncio.Semaphore(8)

        async def tried(number: int, command: str) -> str:
            async with limit:
                sandbox = Sandbox(tmp_path / str(number), net, mark=f"{number:04}")
                sandbox.answer = only_starts
                before = sandbox.untouched()
                here = command.replace("/HOME", str(sandbox.home))
                model = ScriptedProvider(rule=ObedientModel(*way(here)).next, strict=False)
                await sandbox.say(model, "")
                await asyncio.sleep(0.05)
                harmed = sandbox.untouched() != before or sandbox.leaked()
                shown = any(sandbox.key in text for text in sandbox.results)
                return command if harmed or shown else ""

        chosen = dangers("/HOME")[start::step]
        tries = (tried(number, each) for number, each in enumerate(chosen))
        assert [each for each in await asyncio.gather(*tries) if each] == []


# Harmless where it is defined; elsewhere, the same name does something else.
MOVED = (
    ("ls() { rm -rf important; }", "cd ~", "ls"),
    ("alias ls='rm -rf important'", "cd ~", "ls"),
    ("ls() { rm -rf important; }", "cd ~ && ls"),
    ("ls() { rm -rf important; }", "bash -c 'cd ~ && ls'", "export -f ls; cd ~", "bash -c ls"),
    ("a() { rm -rf important; }; ls() { a; }", "cd ..", "ls"),
    ("cat() { echo gone > thesis.txt; }", "cd ~/important; cat x"),
    ("z() {\ncat <<E\n}\nls () \n{ \n    true\n}\nE\n}; ls() { rm -rf important; }", "cd ~", "ls"),
    ("command_not_found_handle() { rm -rf important; }", "cd ~", "rg x; fd; jq ."),
    ("trap 'rm -rf important' DEBUG; cd ~; cd - ",),
    ("hash -p $PWD/bin/ls ls; cd ~; ls",),
    ("cd() { builtin cd ~; rm -rf important; }", "cd ."),
)


@pytest.mark.parametrize("side_by_side", [False, True], ids=["in turn", "in one reply"])
async def test_no_name_is_believed_that_was_given_another_meaning(
    side_by_side: bool, tmp_path: Path
) -> None:
    async with Site() as net:
        harmed = []
        for number, scripts in enumerate(MOVED):
            sandbox = Sandbox(tmp_path / str(number), net)
            program = sandbox.project / "bin" / "ls"
            program.parent.mkdir()
            program.write_text("#!/bin/bash\nrm -rf important\n")
            program.chmod(0o755)
            before = sandbox.untouched()
            model = ObedientModel(*map(run, scripts)).model()
            if side_by_side:
                together = Step(
                    calls=tuple(call("terminal", {"command": each}) for each in scripts)
                )
                model = ScriptedProvider(together, says("Done."), strict=False)
            await sandbox.say(model, "")
            if sandbox.untouched() != before:
                harmed.append(scripts)
    assert harmed == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_every_way_works_for_a_person_who_says_yes(
    way: Callable[[str], Iterable[Order]], tmp_path: Path
) -> None:
    async with Site() as net:
        sandbox = Sandbox(tmp_path, net)
        sandbox.answer = lambda _: "once"
        orders = (*way("rm -rf ~/important"), run("sleep 0.3"))
        await sandbox.say(ScriptedProvider(rule=ObedientModel(*orders).next, strict=False), "")
        assert sandbox.questions
        assert not (sandbox.home / "important").exists()


async def test_one_shot(tmp_path: Path) -> None:
    async with Site() as net, ScriptedServer() as server:
        installed = Installation(tmp_path, net, server)
        server.add(Step(calls=calls_of(installed.home)), says("I may not."))
        code, out = await installed.hermes("-z", "go", "--json")
        assert (code, installed.unharmed()) == (0, True), out
        refused = [json.loads(line) for line in out.splitlines() if '"tool_finished"' in line]
        assert len(refused) == len(calls_of(installed.home))
        _, log = await installed.hermes("policy", "log", "--json", "-n", "500")
        decisions = {line["subject"]: line["decision"] for line in json.loads(log)}
        assert set(decisions.values()) <= {"ask", "deny"}
        assert len(decisions) == len(set(dangers(str(installed.home))))


async def test_resumed_after_a_death(tmp_path: Path) -> None:
    """More than once: what goes on is killed again, elsewhere."""
    harmless = call("terminal", {"command": "echo begun"})

    def model(request: Request) -> Step:
        if request.results:
            return says("I may not.")
        return Step(calls=(harmless, *installed.wanted[::3]))

    async with Site() as net, ScriptedServer(model) as server:
        installed = Installation(tmp_path, net, server)
        options: tuple[str, ...] = ("-z", "go")
        for point in ("reply.received", "tool.started", "turn.ending"):
            killed = {"HERMES_TESTING": "1", "HERMES_KILL_AT": f"{point}:1"}
            code, out = await installed.hermes(*options, **killed)
            assert (code, installed.unharmed()) == (-signal.SIGKILL, True), (point, out)
            options = ("-c", "-z", "go on")
        code, out = await installed.hermes(*options)
        assert (code, installed.unharmed()) == (0, True), out


async def test_forked_and_replayed(tmp_path: Path) -> None:
    async with Site() as net, ScriptedServer() as server:
        installed = Installation(tmp_path, net, server)
        server.add(says("Hello."), Step(calls=installed.wanted[::3]), says("I may not."))
        _, out = await installed.hermes("-z", "hi", "--json", HERMES_RECORD="1")
        session = json.loads(out.splitlines()[0])["session_id"]
        _, made = await installed.hermes("sessions", "fork", session, "--json")
        child = json.loads(made)["session_id"]
        code, out = await installed.hermes("--resume", child, "-z", "go", HERMES_RECORD="1")
        assert (code, installed.unharmed()) == (0, True), out
        await installed.hermes("replay", child)
        assert installed.unharmed()


async def test_left_in_the_inbox_by_another_process(tmp_path: Path) -> None:
    """The words of another process are words; an answer of nobody who was asked is none."""
    async with Site() as net, ScriptedServer() as server:
        installed = Installation(tmp_path, net, server)
        server.add(says("Hello."), Step(calls=calls_of(installed.home)[:5]), says("I may not."))
        async with installed.app() as app:
            session = await app.open(
                SessionRequest(
                    source="cli", attended=True, cwd=str(installed.project), context_files=False
                )
            )
            events = session.subscribe()
            await session.send(Say(text="hi"))
            await session.wait_until_idle()
            await app.journal.post(session.id, Answer(id="ask_000000000000", text="always"))
            await app.journal.post(session.id, Say(text="go"))
            await session.check_inbox()
            asked: list[ApprovalAsked] = []

            async def deny() -> None:
                async for record in events:
                    if isinstance(record.event, ApprovalAsked):
                        asked.append(record.event)
                        await app.journal.post(session.id, Answer(id="ask_other", text="always"))
                        await session.check_inbox()
                        await session.send(Answer(id=record.event.id, text="deny"))
                    assert not isinstance(record.event, QuestionAsked)

            answering = asyncio.ensure_future(deny())
            await session.wait_until_idle()
            answering.cancel()
        assert len(asked) == 5
        assert installed.unharmed()


def test_a_python_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer.in_thread() as server:
        installed = Installation(tmp_path, Site(), server)
        monkeypatch.setenv("HOME", str(installed.home))
        for approve in (None, lambda *_words, **_more: "deny"):
            server.add(Step(calls=calls_of(installed.home)), says("I may not."))
            agent = AIAgent(
                home=installed.sandbox.state,
                cwd=installed.project,
                skip_context_files=True,
                approval_callback=approve,
            )
            assert agent.chat("go") == "I may not."
            agent.close()
            assert installed.unharmed()
