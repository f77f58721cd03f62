"""Judges a shell script: follows every command in it and says the worst that was found."""

from __future__ import annotations

from functools import cache

from hermes.core.effects import RunCommand
from hermes.policy.call import Check
from hermes.policy.disguise import folded
from hermes.policy.findings import Level, Verdict
from hermes.policy.paths import Paths
from hermes.policy.shell.state import State
from hermes.policy.shell.tree import Unclear
from hermes.policy.walk import Walk

USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@cache
def _programs() -> dict[str, Check]:
    # Most sessions run a command, but none needs this before its first one.
    from hermes.policy.programs.catalogue import catalogue

    return catalogue()


class Commands:
    """Judges commands for one workspace and one home."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._known: dict[tuple[str, str], Verdict] = {}

    def judge(self, effect: RunCommand) -> Verdict:
        key = (effect.script, effect.cwd)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > 256:
                self._known.clear()
            found = self._known[key] = self._judge(effect.script, effect.cwd)
        return found

    def _judge(self, script: str, cwd: str) -> Verdict:
        walk = Walk(self._paths, _programs())
        self._follow(walk, script, cwd)
        if not script.isascii() and (plain := folded_text(script)) != script:
            # The plain twin of a disguised text is what a person believes to see.
            twin = Walk(self._paths, _programs())
            self._follow(twin, plain, cwd)
            walk.findings += [each for each in twin.findings if each.level is Level.NEVER]
        return Verdict(
            findings=tuple(walk.findings),
            commands=tuple(walk.commands),
            touched=tuple(walk.touched),
        )

    def _follow(self, walk: Walk, script: str, cwd: str) -> None:
        home = self._paths.home
        variables: dict[str, tuple[str, ...]] = {
            "HOME": (home,),
            "USER": (home.rpartition("/")[2],),
            "LOGNAME": (home.rpartition("/")[2],),
            "PATH": (USUAL_PATH,),
            "SHELL": ("/bin/bash",),
            "IFS": (" \t\n",),
            "TMPDIR": ("/tmp",),
            "0": ("bash",),
        }
        try:
            walk.run(script, State(cwd, variables))
        except (Unclear, RecursionError) as unclear:
            walk.unclear(str(unclear) if isinstance(unclear, Unclear) else "too much nesting")


def folded_text(script: str) -> str:
    return " ".join(folded(word) for word in script.split(" "))
