"""With safe roots configured, nothing is written elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.effects import Allow, Deny, WritePath
from hermes.core.events import ToolFinished
from hermes.core.messages import ToolResult
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.policy.inquiries import answer
from hermes.policy.rule_setup import safe_roots
from hermes.policy.rules import PolicySettings
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from hermes.workspaces.confinement.sandbox import Wanted
from tests.policy.decisions import ROOT, decide, rules
from tests.workspaces.places import confined_missing

SAFE = f"{ROOT}/out"
# What nobody can tell from the text of the command.
SECRETLY = (
    "import os; q = chr(47).join(['..', 'sent.txt']); "
    "open(os.path.join(os.getcwd(), 'out', q), 'w').write('gone')"
)


@pytest.mark.parametrize(
    "script",
    [
        "echo x > notes.txt",
        "cp out/a b",
        "mv out/a ../a",
        "rm notes.txt",
        "rm -rf build",
        "sed -i s/a/b/ src/main.py",
        "tee /tmp/x < out/a",
        "cd out && echo x > ../notes.txt",
        "python -c \"open('notes.txt', 'w')\"",
        "ln -s / out/l && echo x > out/l/srv/people/y",
        "bash -c 'touch notes.txt'",
        "tar xf a.tar -C /srv/people",
        "find . -name '*.pyc' -delete",
    ],
)
def test_what_the_text_tells_is_refused_in_every_mode(script: str) -> None:
    for mode in ("manual", "off"):
        found = decide(script, rules(PolicySettings(mode=mode, safe_roots=(SAFE,))))
        assert isinstance(found, Deny), (mode, found)
        assert (found.category, SAFE in found.reason) == ("settings", True)


@pytest.mark.parametrize(
    "script",
    ["echo x > out/a", "rm -rf out/build", "cat notes.txt > /dev/null 2>&1", "grep -r x .", "ls"],
)
def test_what_stays_inside_is_as_it_was(script: str) -> None:
    with_roots = decide(script, rules(PolicySettings(safe_roots=(SAFE,))))
    assert with_roots == decide(script)
    assert isinstance(with_roots, Allow)


def test_files_are_refused_by_where_they_really_are(tmp_path: Path) -> None:
    safe, root = tmp_path / "safe", tmp_path / "project"
    safe.mkdir()
    root.mkdir()
    (safe / "way").symlink_to(root)
    (root / "in").symlink_to(safe)
    by = rules(PolicySettings(safe_roots=(str(root / "in"),)), root=str(root))
    for path in (root / "a.txt", safe / "way/a.txt", root / "in/../a.txt"):
        assert isinstance(decide(WritePath(path=str(path)), by), Deny), path
    assert not isinstance(decide(WritePath(path=str(root / "in/a.txt")), by), Deny)


def test_never_stays_never() -> None:
    found = decide("rm -rf /", rules(PolicySettings(safe_roots=(SAFE,))))
    assert isinstance(found, Deny)
    assert found.hardline


def test_a_variable_names_several_as_paths_do(tmp_path: Path) -> None:
    env = {"HERMES_WRITE_SAFE_ROOT": f"/srv/a:{tmp_path}"}
    settings = load(Home(tmp_path), env=env).settings
    assert safe_roots(settings.security) == ("/srv/a", str(tmp_path))


class Jail:
    """An app of somebody who is never asked, with a folder that may be written in its project."""

    def __init__(self, folder: Path, server: ScriptedServer, wanted: str = "off") -> None:
        folder = folder.resolve()
        self.project, self.home = folder / "project", folder / "home"
        self.out, self.sent = self.project / "out", self.project / "sent.txt"
        self.out.mkdir(parents=True)
        self.home.mkdir()
        self.sent.write_text("sent")
        (self.out / "secretly.py").write_text(SECRETLY)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home)}
        self.flags = {
            "model.default": "test",
            "model.provider": "custom",
            "model.base_url": f"{server.url}/v1",
            "approvals.mode": "off",
            "terminal.confinement": wanted,
            "security.write_safe_roots": [str(self.out)],
        }

    async def results(self) -> list[ToolResult]:
        config = load(Home(self.home / ".hermes"), flags=self.flags, env=self.env)
        async with App(config, env=self.env, world=World()) as app:
            opening = SessionRequest(source="cli", attended=False, cwd=str(self.project))
            session = await app.open(opening)
            events = session.subscribe()
            await session.send(Say(text="go"))
            await session.wait_until_idle()
            events.close()
            return [r.event.result async for r in events if isinstance(r.event, ToolFinished)]

    def left(self) -> set[str]:
        """What the project holds now."""
        return {str(each.relative_to(self.project)) for each in self.project.rglob("*")}


WAYS = [
    calls("write_file", path="sent.txt", content="gone"),
    calls("write_file", path="out/../new.txt", content="new"),
    calls("patch", path="sent.txt", old_string="sent", new_string="gone"),
    calls("terminal", command="echo gone > sent.txt"),
    calls("terminal", command="rm -f sent.txt"),
    calls("terminal", command="python3 out/secretly.py"),
    calls("terminal", command="python3 out/secretly.py", background=True),
    calls("terminal", command="python3 out/secretly.py", pty=True),
    calls("terminal", command="p=sent.txt; eval 'echo gone >$p'"),
    # What is asked about runs openly once it is allowed.
    calls("terminal", command="curl -sd x http://127.0.0.1:9/; python3 out/secretly.py"),
    calls("tool_call", name="terminal", arguments={"command": "python3 out/secretly.py"}),
]


@pytest.mark.parametrize("wanted", ["off", "landlock", "bubblewrap"])
async def test_no_way_leads_out_of_them(tmp_path: Path, wanted: Wanted) -> None:
    if wanted != "off" and (why := confined_missing(wanted)):
        pytest.skip(why)
    waiting = calls("terminal", command="sleep 1; cat out/done")
    inside = [
        calls("write_file", path="out/a.txt", content="a"),
        calls("terminal", command="echo t > $(mktemp) && echo t > $TMPDIR/t && echo b > out/b.txt"),
        calls("terminal", command="curl -sd x http://127.0.0.1:9/; echo done > out/done"),
    ]
    async with ScriptedServer([*WAYS, *inside, waiting, says("ok")], strict=False) as server:
        jail = Jail(tmp_path, server, wanted)
        results = await jail.results()
    assert jail.sent.read_text() == "sent"
    made = {"out/a.txt", "out/b.txt", "out/done"}
    assert jail.left() == {"sent.txt", "out", "out/secretly.py", *made}
    assert len(results) == len(WAYS) + 4
    assert str(jail.out) in results[0].text
    secretly = [
        each.text for each, way in zip(results, WAYS, strict=False) if "secretly" in str(way)
    ]
    assert all(
        "PermissionError" in text or "OSError" in text for text in secretly[:1] + secretly[2:]
    )


async def test_without_a_means_no_command_runs(tmp_path: Path) -> None:
    async with ScriptedServer([calls("terminal", command="date"), says("ok")]) as server:
        jail = Jail(tmp_path, server, "bubblewrap")
        jail.env["PATH"] = str(tmp_path)
        (tmp_path / "bash").symlink_to("/bin/bash")
        (result,) = await jail.results()
    assert "nothing here enforces that for commands" in result.text


def test_the_check_tells_it(tmp_path: Path) -> None:
    config = load(Home(tmp_path), flags={"security.write_safe_roots": ["/srv/a"]}, env={})
    line = json.dumps({"effect": "write", "value": "x.txt", "cwd": "/srv/b"})
    told = answer(config, line.encode())
    assert (told["decision"], told["category"]) == ("deny", "settings")
