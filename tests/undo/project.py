"""A project with everything in it that is easily lost, and a person who works in it meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import TracebackType

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
USER_FILES = 20

PERSON = """
import json, os, random, sys, time
from pathlib import Path
root, report, stop = map(Path, sys.argv[1:4])
pause = float(sys.argv[4])
names = json.loads(sys.argv[5])
chance = random.Random(7)
said = {}
count = 0
while True:
    last = stop.exists()
    for name in chance.sample(names, 5) if not last else ():
        path = root / name
        count += 1
        text = f"{name} as the person left it, edit {count}\\n" * chance.randint(1, 5)
        if chance.random() < 0.5:
            path.write_text(text)
        else:
            other = path.with_name(path.name + ".swp")
            other.write_text(text)
            os.replace(other, path)
        said[name] = text
    report.with_suffix(".new").write_text(json.dumps(said))
    os.replace(report.with_suffix(".new"), report)
    if last:
        break
    time.sleep(pause)
"""


def make(root: Path, outside: Path) -> None:
    """Folders, a repository with uncommitted work, links of both kinds, odd names and modes."""
    outside.mkdir(exist_ok=True)
    (outside / "precious.txt").write_text("not in the project\n")
    for number in range(12):
        path = root / "src" / f"part{number % 3}" / f"f{number}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"int f{number}() {{ return {number}; }}\n" * (number + 1))
    (root / "README.md").write_text("# Project\nread me\n")
    (root / "run.sh").write_text("#!/bin/sh\necho run\n")
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text("*.log\nsecret.env\ndata/\nwork/\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "README.md").write_text("# Project\nsecond\n")
    git(root, "commit", "-qam", "two")
    (root / "README.md").write_text("# Project\nnot committed\n")
    (root / "untracked.txt").write_text("never added\n")
    (root / "secret.env").write_text("KEY=1\n")
    (root / "secret.env").chmod(0o600)
    _odd_things(root, outside)
    for name in user_files():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} at first\n")


def _odd_things(root: Path, outside: Path) -> None:
    data = root / "data"
    data.mkdir()
    (data / "empty").mkdir()
    (data / "one.bin").write_bytes(os.urandom(300_000))
    os.link(data / "one.bin", data / "same.bin")
    os.link(root / "run.sh", data / "run-again.sh")
    (data / "read-only.txt").write_text("do not touch\n")
    (data / "read-only.txt").chmod(0o444)
    locked = data / "locked"
    locked.mkdir()
    (locked / "inner.txt").write_text("inner\n")
    locked.chmod(0o555)
    (root / "link-in").symlink_to("src/part0")
    (root / "link-out").symlink_to(outside)
    (root / "broken").symlink_to("nowhere")
    (root / "ümläut-文件.txt").write_text("unicode\n")
    (root / "name with\nbreak").write_text("odd\n")
    (root / "-rf").write_text("a dash\n")
    Path(os.fsdecode(os.fsencode(root) + b"/not-\xff-text")).write_text("bytes\n")
    deep = root / "deep"
    for number in range(40):
        deep = deep / f"level{number}"
    deep.mkdir(parents=True)
    (deep / "bottom.txt").write_text("down here\n")
    os.mkfifo(root / "pipe")
    with (root / "sparse.img").open("wb") as file:
        file.truncate(5 << 30)
        file.seek(1 << 30)
        file.write(b"in the middle" * 1000)
    database(root / "app.db").close()


def database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE IF NOT EXISTS t(x)")
    db.executemany("INSERT INTO t VALUES(?)", [(n,) for n in range(500)])
    db.commit()
    return db


def user_files() -> list[str]:
    places = ("work", "src/part1", "docs", ".")
    return [f"{places[n % 4]}/mine{n}.txt".removeprefix("./") for n in range(USER_FILES)]


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run((*GIT, *arguments), cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


class Person:
    """Another process that edits files of its own all the time, by both ways of saving."""

    def __init__(self, root: Path, names: list[str], folder: Path, pause: float = 0.005) -> None:
        self._report = folder / "said.json"
        self._stop = folder / "stop"
        self._process = subprocess.Popen(
            (
                *(sys.executable, "-S", "-c", PERSON, str(root), str(self._report)),
                *(str(self._stop), str(pause), json.dumps(names)),
            )
        )

    def said(self) -> dict[str, str]:
        """What every file holds after the last edit; nobody edits any more."""
        self._stop.touch()
        assert self._process.wait(timeout=60) == 0
        found: dict[str, str] = json.loads(self._report.read_text())
        return found

    def __enter__(self) -> Person:
        while not self._report.exists():
            assert self._process.poll() is None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
