"""Gives the verdict about a shell script by following every command in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.effects import RunCommand
from hermes.core.ports import ShellSetup
from hermes.policy.call import USUAL_PATH
from hermes.policy.findings import VAGUE, Finding, Level, Verdict
from hermes.policy.path_effects import Paths
from hermes.policy.places.spelling import fold_lookalikes
from hermes.policy.programs.records import language_of
from hermes.policy.session_files import CommandFiles, ScriptFiles, SessionFiles
from hermes.policy.shell.functions import load_definitions
from hermes.policy.shell.state import State
from hermes.policy.shell.tree import Unclear
from hermes.policy.walk import ScriptWalk

if TYPE_CHECKING:
    from hermes.policy.taint.implied import ImpliedFiles


class Commands:
    """Gives verdicts about commands of one workspace and one home. `shell` tells what earlier
    commands have defined in the shell that runs them, `confined` whether unknown programs may
    run."""

    def __init__(
        self,
        paths: Paths,
        written: SessionFiles | None = None,
        shell: Callable[[], ShellSetup] = ShellSetup,
        confined: Callable[[], bool] = lambda: False,
    ) -> None:
        self._paths = paths
        self._confined = confined
        self._shell = shell
        self._session_files = written or SessionFiles()
        self._implied: ImpliedFiles | None = None

    def verdict(self, effect: RunCommand) -> Verdict:
        """Return the findings about a command. Nothing is cached: files and links may have
        changed."""
        script, cwd = effect.script, effect.cwd
        contents = ScriptFiles(self._session_files)
        walk = self._follow(script, cwd, contents)
        found, hidden, used = tuple(walk.findings), tuple[Finding, ...](), tuple[str, ...]()
        if contents.asked:
            alone = self._follow(script, cwd, ScriptFiles(SessionFiles()))
            if alone.commands != walk.commands or alone.findings != walk.findings:
                used = tuple(contents.asked)
            found, hidden = _separate(found, tuple(alone.findings))
        if not script.isascii() and (plain := fold_script(script)) != script:
            # The plain twin of a disguised text is what a person sees.
            twin = self._follow(plain, cwd, ScriptFiles(SessionFiles()))
            found += tuple(each for each in twin.findings if each.level is Level.NEVER)
        found += self._inside_own_files(walk, cwd, contents)
        verdict = Verdict(
            findings=found,
            commands=tuple(walk.commands),
            hidden=hidden,
            touched=tuple(walk.touched),
            uses_new_files=bool(contents.asked) or self._runs_new_project(walk.commands, cwd),
        )
        return (
            self._add_tainted_files(verdict, cwd, used)
            if self._session_files.has_tainted_files()
            else verdict
        )

    def _inside_own_files(
        self, walk: ScriptWalk, cwd: str, contents: ScriptFiles
    ) -> tuple[Finding, ...]:
        """Return the findings in files that the command writes and then runs without naming them,
        such as `package.json`."""
        if not contents or not any(language_of(each.partition(" ")[0]) for each in walk.commands):
            return ()
        from hermes.policy.taint.implied import ImpliedFiles

        own = CommandFiles(contents)

        def follow(script: str, cwd: str) -> tuple[Finding, ...]:
            return tuple(self._follow(script, cwd, ScriptFiles(own)).findings)

        found, _ = ImpliedFiles(own, self._paths.root, follow).of(walk.commands, cwd)
        return tuple(each for each in found if each.level >= Level.ASKED)

    def _runs_new_project(self, commands: list[str], cwd: str) -> bool:
        """Whether a command runs code of the project and the files that say which are new."""
        if not any(language_of(each.partition(" ")[0]) for each in commands):
            return False
        return self._session_files.has_new_project_file(cwd, self._paths.root)

    def _add_tainted_files(self, verdict: Verdict, cwd: str, used: tuple[str, ...]) -> Verdict:
        """Add findings about tainted files that the commands run, named or not."""
        if self._implied is None:
            # Most homes have no tainted files.
            from hermes.policy.taint.implied import ImpliedFiles

            def follow(script: str, cwd: str) -> tuple[Finding, ...]:
                return tuple(self._follow(script, cwd, ScriptFiles(self._session_files)).findings)

            self._implied = ImpliedFiles(self._session_files, self._paths.root, follow)
        found, implied = self._implied.of(verdict.commands, cwd)
        behind = {path: self._session_files.sources(path) for path in (*used, *implied)}
        sources = {source for each in behind.values() for source in each}
        return replace(
            verdict,
            findings=(
                *verdict.findings,
                *(each for each in found if each.category != "obfuscated"),
            ),
            hidden=(*verdict.hidden, *(each for each in found if each.category == "obfuscated")),
            tainted_files=tuple(path for path, by in behind.items() if by),
            sources=tuple(sorted(sources)),
        )

    def _follow(self, script: str, cwd: str, contents: ScriptFiles) -> ScriptWalk:
        walk = ScriptWalk(self._paths, self._confined)
        setup = self._shell()
        home = self._paths.home
        variables: dict[str, tuple[str, ...]] = {
            "HOME": (home,),
            "USER": (home.rpartition("/")[2],),
            "LOGNAME": (home.rpartition("/")[2],),
            "PATH": (setup.path or USUAL_PATH,),
            "SHELL": ("/bin/bash",),
            "IFS": (" \t\n",),
            "TMPDIR": (self._paths.safe.temporary,),
            "0": ("bash",),
        }
        try:
            state = State(cwd, variables)
            state.files = contents
            load_definitions(setup, script, state)
            walk.run(script, state)
        except (Unclear, RecursionError) as unclear:
            walk.unclear(str(unclear) if isinstance(unclear, Unclear) else "too much nesting")
        return walk


def _separate(
    found: tuple[Finding, ...], plain: tuple[Finding, ...]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Split the findings into certain ones (those of `plain`, from the text alone, included) and
    those about obfuscated code in new files."""
    inside = [each for each in found if each not in plain]
    certain = tuple(each for each in inside if not _is_vague(each))
    return plain + certain, tuple(each for each in inside if each.category == "obfuscated")


def _is_vague(finding: Finding) -> bool:
    """Whether the finding says little: scripts often hold parts that are only known when they
    run."""
    unnamed = "…" in finding.command and finding.category in ("overwrite", "delete", "permissions")
    return finding.level is Level.ASKED and (finding.category in VAGUE or unnamed)


def fold_script(script: str) -> str:
    return " ".join(fold_lookalikes(word) for word in script.split(" "))
