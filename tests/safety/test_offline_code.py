"""Code that was written in the session runs without a network, whichever program runs it, even if
nothing in it tells that it uses one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.events import ToolFinished
from hermes.core.session_request import SessionRequest
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, call, says
from hermes.workspaces.confinement.sandbox import find_means
from tests.safety.adversary import Order
from tests.safety.installation import Installation
from tests.web.site import Site

# The module is found by a name that the text does not contain.
HIDDEN = (
    "import importlib\nname = chr(115) + 'ocke' + chr(116)\nnet = importlib.import_module(name)\n"
    "net.create_connection(('127.0.0.1', {port})).sendall(b'GET /left HTTP/1.1\\r\\n\\r\\n')\n"
)


def write(path: str, content: str) -> Order:
    return ("write_file", {"path": path, "content": content})


def run(command: str) -> Order:
    return ("terminal", {"command": command})


ROUTES: dict[str, tuple[Order, ...]] = {
    "a script": (write("x.py", HIDDEN), run("python3 x.py")),
    "a target": (
        write("x.py", HIDDEN),
        write("Makefile", "all:\n\tpython3 x.py\n"),
        run("make"),
    ),
    "a shell script": (
        write("x.py", HIDDEN),
        write("x.sh", "python3 ./x.py\n"),
        run("bash x.sh"),
    ),
    "a program": (
        write("x", f"#!/usr/bin/env python3\n{HIDDEN}"),
        run("chmod +x x && ./x"),
    ),
    "a script of npm": (
        write("x.py", HIDDEN),
        write("package.json", '{"name": "x", "scripts": {"test": "python3 x.py"}}'),
        run("npm test"),
    ),
    "a hook of git": (
        write("x.py", HIDDEN),
        write(".git/hooks/pre-commit", "#!/bin/sh\npython3 x.py\n"),
        run("git init -q . && git add -A && git commit -qm x"),
    ),
}


async def results_of(installed: Installation, orders: tuple[Order, ...], port: int) -> list[str]:
    for name, given in orders:
        filled = {key: value.replace("{port}", str(port)) for key, value in given.items()}
        installed.server.add(Step(calls=(call(name, filled),)))
    installed.server.add(says("Done."))
    async with installed.app() as app:
        request = SessionRequest(source="cli", attended=False, cwd=str(installed.project))
        session = await app.open(request)
        await session.send(Say(text="Please go on."))
        await session.wait_until_idle()
        events = [each.event for each in await app.journal.read(session.id)]
    return [each.result.text for each in events if isinstance(each, ToolFinished)]


@pytest.mark.parametrize("route", ROUTES)
async def test_new_code_reaches_nobody(route: str, tmp_path: Path) -> None:
    if find_means("auto", "/usr/bin:/bin")[0] is None:
        pytest.skip("nothing here confines commands")
    if route.endswith("npm") and shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    async with Site() as net, ScriptedServer(strict=False) as server:
        installed = Installation(tmp_path, net, server)
        text = installed.settings.read_text()
        installed.settings.write_text(text.replace('confinement: "off"', 'confinement: "auto"'))
        results = await results_of(installed, ROUTES[route], net.port)
        assert net.asked == []
        assert "Not allowed" in "".join(results) or "without a network" in results[-1], results


async def test_a_rule_of_the_person_gives_it_a_network(tmp_path: Path) -> None:
    if find_means("auto", "/usr/bin:/bin")[0] is None:
        pytest.skip("nothing here confines commands")
    async with Site() as net, ScriptedServer(strict=False) as server:
        installed = Installation(tmp_path, net, server)
        text = installed.settings.read_text()
        installed.settings.write_text(text.replace('confinement: "off"', 'confinement: "auto"'))
        rule = '[[rule]]\ndecision = "allow"\nmatch = "python3 x.py"\n'
        (installed.sandbox.state / "policy.toml").write_text(rule)
        await results_of(installed, ROUTES["a script"], net.port)
        assert len(net.asked) == 1
