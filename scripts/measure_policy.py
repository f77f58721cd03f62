"""Measures the command policy on public collections of commands.

    python scripts/measure_policy.py FOLDER [--only tldr] [--list ask --sample 200 --seed 1]

FOLDER holds clones of tldr-pages/tldr and GTFOBins/GTFOBins.github.io, bare or checked out, at any
depth. Most tldr commands are ordinary, so many questions mean false alarms; which ones are has to
be judged by hand, for which `--list` prints decisions. GTFOBins shows how programs read, write and
send files and start shells, so every `allow` has to be explained. Nothing is run.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hermes.core.effects import Allow, Ask, RunCommand
from hermes.policy.rules import PolicySettings, SessionPolicy

HOME = "/home/person"
PROJECT = f"{HOME}/project"
PLATFORMS = ("common", "linux")


class Judged(NamedTuple):
    """A command with the decision about it."""

    source: str
    script: str
    answer: str
    category: str
    reason: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=["tldr", "gtfobins"])
    parser.add_argument("--list", choices=["allow", "ask", "deny"], dest="listed")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    collections = {"tldr": ("pages/", tldr_commands), "gtfobins": ("_gtfobins/", gtfobins_commands)}
    found = 0
    for name, (under, commands) in collections.items():
        files = find_files(options.folder, under) if options.only in (None, name) else {}
        if files:
            found += 1
            judged = judge(sorted(set(commands(files))))
            report(name, judged)
            if options.listed:
                show([each for each in judged if each.answer == options.listed], options)
    if not found:
        sys.exit(
            f"{options.folder} holds neither tldr pages nor GTFOBins; clone one of them there."
        )


def find_files(folder: Path, under: str) -> dict[str, str]:
    """Read the files below `under` in the first repository of the folder that has such files."""
    for repository in sorted({each.parent for each in folder.rglob("HEAD") if each.is_file()}):
        names = run_git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
        wanted = [name for name in names if name.startswith(under)]
        if wanted:
            return dict(read_objects(repository, wanted))
    return {}


def run_git(repository: Path, *arguments: str, text: str = "") -> str:
    command = ["git", "--git-dir", str(repository), *arguments]
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    return done.stdout


def read_objects(repository: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Read files of the newest commit without a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "files.tar")
        top = sorted({name.partition("/")[0] for name in names})
        run_git(repository, "archive", f"--output={archive}", "HEAD", *top)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield name, path.read_text(encoding="utf-8", errors="replace")


def tldr_commands(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the example commands of the pages, with values in place of placeholders."""
    for name, text in files.items():
        parts = name.split("/")
        if parts[1] in PLATFORMS:
            for line in re.findall(r"(?m)^`([^`]+)`$", text):
                yield parts[-1].removesuffix(".md"), fill(line)


def fill(line: str) -> str:
    """Replace placeholders: of several options or values the first, absolute sample paths by
    relative ones, so that the command works in the current folder."""

    def value(found: re.Match[str]) -> str:
        text = found[1]
        if text.startswith("[") and text.endswith("]") and "|" in text:
            return text[1:-1].split("|")[0]
        if "://" not in text:
            text = text.split("|")[0]
        text = re.sub(r"\[[^\]]*\|[^\]]*\]", "", text.replace(" ...", ""))
        return re.sub(r"(?<!\w)/path/to/", "path/to/", text)

    line = re.sub(r"\{\{(.*?)\}\}(?!\})", value, line)
    return line.replace("\\{\\{", "{{").replace("\\}\\}", "}}").replace("/dev/sdX", "/dev/sdb")


def gtfobins_commands(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the code of each entry: it reads a key, writes into the system or starts a shell."""
    for name, text in files.items():
        function = ""
        for found in re.finditer(
            r"(?m)^  ([\w-]+):$|^  - code: (?:\|-?\n((?:      .*\n|\n)+)|(.+))", text
        ):
            if found[1]:
                function = found[1]
                continue
            script = re.sub(r"(?m)^      ", "", found[2]) if found[2] else found[3]
            script = script.replace("/path/to/input-file", f"{HOME}/.ssh/id_rsa")
            script = script.replace("/path/to/output-file", "/etc/cron.d/output")
            yield (
                f"{name.partition('/')[2]} {function}",
                script.replace("/path/to/", "/tmp/").strip(),
            )


def judge(commands: list[tuple[str, str]]) -> list[Judged]:
    policy = SessionPolicy(
        PolicySettings(), root=PROJECT, home=HOME, state=f"{HOME}/.hermes", keep=lambda _: None
    )
    judged = []
    for source, script in commands:
        effect = RunCommand(script=script, cwd=PROJECT)
        decision = policy.decide(effect, "owner", frozenset({"user"}))
        answer = type(decision).__name__.lower()
        category = "" if isinstance(decision, Allow) else decision.category
        judged.append(Judged(source, script, answer, category, decision.reason))
    return judged


def report(name: str, judged: list[Judged]) -> None:
    answers = Counter(each.answer for each in judged)
    shares = ", ".join(
        f"{key} {count} ({count / len(judged):.1%})" for key, count in sorted(answers.items())
    )
    print(f"{name}: {len(judged)} commands, {shares}")
    asked = Counter(each.category for each in judged if each.answer == Ask.__name__.lower())
    for category, count in asked.most_common():
        print(f"  ask {category}: {count}")


def show(judged: list[Judged], options: argparse.Namespace) -> None:
    if options.sample and options.sample < len(judged):
        judged = random.Random(options.seed).sample(judged, options.sample)
    for each in judged:
        print(f"{each.answer}\t{each.category}\t{each.source}\t{each.script!r}\t{each.reason}")


if __name__ == "__main__":
    main()
