"""The real sudo, for a user that exists only inside a mount namespace of the test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.workspaces.shell import Sudo, uses_sudo

PASSWORD = "correct horse 7"
USER_ID = 64242
# Where the test's folder is inside the namespace.
SEEN = "/mnt"

# Runs as the user: a workspace, a person who mistypes once, and what the commands showed.
SESSION = """
import asyncio, json, os, sys
from pathlib import Path
from hermes.core.effects import RunCommand
from hermes.core.world import World
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.shell import Sudo

async def main(folder, answers, scripts):
    asked = []
    async def ask():
        asked.append(1)
        return answers.pop(0) if answers else None
    workspace = LocalWorkspace(
        folder, state=Path(folder, "state"), world=World(), sudo=Sudo(ask),
        env={"PATH": os.environ["PATH"], "HOME": folder},
    )
    results = []
    for script, pty in scripts:
        effect = RunCommand(script=script, cwd=workspace.cwd)
        stop = asyncio.Event()
        result = await workspace.run(effect, timeout=60, stop=stop, max_bytes=50000, pty=pty)
        results.append((result.output, result.exit_code, len(asked)))
    await workspace.close()
    print(json.dumps(results))

asyncio.run(main(*json.loads(sys.argv[1])))
"""


def missing() -> str:
    if os.getuid() != 0:
        return "only root can make a user for the test"
    tools = ("sudo", "unshare", "setpriv", "openssl", "mount")
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def as_user(folder: Path, answers: list[str], scripts: list[tuple[str, bool]]) -> list[Any]:
    if why := missing():
        pytest.skip(why)
    etc = folder / "etc"
    etc.mkdir()
    home = folder / "home"
    home.mkdir()
    os.chown(home, USER_ID, USER_ID)
    folder.chmod(0o755)
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", PASSWORD], capture_output=True, text=True, check=True
    ).stdout.strip()
    name = "hermes-tester"
    lines = {
        "passwd": f"{name}:x:{USER_ID}:{USER_ID}::{SEEN}/home:/bin/bash\n",
        "shadow": f"{name}:{hashed}:19000:0:99999:7:::\n",
        "group": f"{name}:x:{USER_ID}:\n",
    }
    for file, line in lines.items():
        (etc / file).write_text(Path("/etc", file).read_text() + line)
    (etc / "sudoers").write_text(f"{name} ALL=(ALL:ALL) ALL\nDefaults !lecture\n")
    for file, mode in (("passwd", 0o644), ("group", 0o644), ("shadow", 0o640), ("sudoers", 0o440)):
        (etc / file).chmod(mode)
    # The test's folder and the interpreter may be closed to others; in here they are elsewhere.
    (folder / "python").mkdir()
    binds = [(f"{etc}/{file}", f"/etc/{file}") for file in (*lines, "sudoers")]
    binds += [(str(folder), SEEN), (sys.base_prefix, f"{SEEN}/python")]
    mounts = "; ".join(f"mount --bind {source} {target}" for source, target in binds)
    (folder / "session.py").write_text(SESSION)
    task = json.dumps([f"{SEEN}/home", answers, scripts])
    user = ["setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups", "--"]
    packages = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
    program = f"{SEEN}/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", f'{mounts}; exec "$@"', "sh", *user,
         "env", f"PYTHONPATH={os.pathsep.join(packages)}", f"HOME={SEEN}/home",
         f"PATH={os.defpath}",
         program, f"{SEEN}/session.py", task],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(result) for result in json.loads(done.stdout)]


def test_the_password_is_asked_once_and_again_when_it_was_wrong(tmp_path: Path) -> None:
    scripts = [
        ("echo no question yet", False),
        ("sudo id -u", False),
        ("bash -c '(sudo id -u; true)'; echo x | sudo cat; sudo -n true && echo open", False),
        ("sudo id -u", True),
    ]
    results = as_user(tmp_path, ["wrong", PASSWORD], scripts)
    assert results == [
        ("no question yet\n", 0, 0),
        ("0\n", 0, 2),
        ("0\nx\nopen\n", 0, 2),
        ("0\n", 0, 2),
    ]


def test_the_password_shows_nowhere(tmp_path: Path) -> None:
    look = (
        "sudo true; env; set; history; cat /proc/$$/environ | tr '\\0' '\\n'; "
        "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; done 2>/dev/null; "
        "cat <&9; grep -rs horse ~; sudo id -u"
    )
    [(output, code, asked)] = as_user(tmp_path, [PASSWORD], [(look, False)])
    # The one who looks is told the word by the command line of the test itself.
    seen = [line for line in output.splitlines() if "horse" in line and "session.py" not in line]
    assert seen == [line for line in seen if "grep -rs horse" in line]
    assert output.splitlines()[-1] == "0"
    assert (code, asked) == (0, 1)


def test_without_an_answer_sudo_fails_by_itself(tmp_path: Path) -> None:
    [(output, code, asked)] = as_user(tmp_path, [], [("sudo id -u", False)])
    assert "password is required" in output
    assert (code, asked) == (1, 1)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sudo ls", True),
        ("make && sudo make install", True),
        ("env A=1 sudo -u bob ls", True),
        ("echo sudo", False),
        ("grep sudo file # sudo", False),
        ("pseudo ls", False),
    ],
)
def test_only_real_uses_of_sudo_count(script: str, expected: bool) -> None:
    assert uses_sudo(script) is expected


def test_a_password_does_not_show_when_it_is_printed() -> None:
    assert PASSWORD not in repr(Sudo(known=PASSWORD))
