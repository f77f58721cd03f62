"""Looks at what several rooms keep in a home and says what is wrong with it."""

from __future__ import annotations

from contextlib import closing

from hermes.config.findings import Finding, fault, fine, warning
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.secrets import environment
from hermes.core.errors import JournalError
from hermes.core.world import World
from hermes.credentials.redaction import Secrecy
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.verify import Problem, verify
from hermes.models.explaining import Reason, explain_choice
from hermes.models.models import Models
from hermes.workspaces.confinement.protection import Protection

MOST_NAMED = 5


async def journal_findings(home: Home) -> list[Finding]:
    """Reads every record once; nothing is made where there is no journal."""
    if not home.journal.exists():
        return [fine("there is no journal yet; the first session makes it")]
    try:
        async with SqliteJournal(home.journal, World()) as journal:
            problems = await verify(journal)
    except JournalError as error:
        fix = f"move {home.journal} aside and restore a backup"
        return [fault("journal", f"the journal cannot be read: {error}", fix=fix)]
    if not problems:
        return [fine(f"{home.journal} is whole and unchanged")]
    words = f"{len(problems)} damaged records are set aside; all others stay usable"
    named = [fault("record", _record_words(problem)) for problem in problems[:MOST_NAMED]]
    return [fault("journal", words, fix="restore a backup to get them back"), *named]


def _record_words(problem: Problem) -> str:
    if not problem.session_id:
        return f"in the file: {problem.why}"
    return f"record {problem.n} of session {problem.session_id}: {problem.why}"


async def index_findings(home: Home) -> list[Finding]:
    with closing(JournalFile(home.journal)) as source:
        problems = await SearchIndex(home.index, source).check()
    if problems:
        fix = "`hermes doctor --fix` makes it anew from the journal"
        return [warning("index", problem, fix=fix) for problem in problems[:MOST_NAMED]]
    state = "is sound" if home.index.exists() else "is made with the first search"
    return [fine(f"the search index {state}")]


async def rebuild_index(home: Home) -> None:
    with closing(JournalFile(home.journal)) as source:
        await SearchIndex(home.index, source).rebuild()


async def workplace_findings(config: Config) -> list[Finding]:
    """Where commands run, and what stands between them and the machine, without flattery.
    Nothing is started or contacted."""
    from hermes.config.run_context import RunContext
    from hermes.workspaces.placement import protection_of
    from hermes.workspaces.terminal_settings import described, is_far

    terminal = config.settings.terminal
    undo = config.settings.checkpoints.enabled and not is_far(terminal)
    found = [_undo_finding(config, undo)]
    env = environment()
    run = RunContext(config, env=env, world=World(), redactor=Secrecy(config, env))
    if is_far(terminal):
        from hermes.workspaces.far.backends import missing

        if why := missing(run):
            words, _, fix = why.rstrip(".").partition("; ")
            fix = fix or "`hermes config set terminal.backend local`"
            return [*found, fault("backend", words, fix=fix, key="terminal.backend")]
        found.append(fine(described(terminal)))
    return [*found, *_protection_findings(await protection_of(run))]


def _undo_finding(config: Config, undo: bool) -> Finding:
    if undo:
        return fine("what is done to files can be taken back (`hermes undo`)")
    if config.settings.checkpoints.enabled:
        return warning("undo", "what is done to files on another machine cannot be undone")
    fix = "`hermes config set checkpoints.enabled true`"
    return warning("undo", "what is done to files cannot be taken back", fix=fix)


def _protection_findings(protection: Protection) -> list[Finding]:
    if not protection.confined:
        why = "; ".join(protection.gaps)
        fix = "`hermes config set terminal.confinement auto`, or install bubblewrap"
        return [warning("confinement", f"commands run with all your rights ({why})", fix=fix)]
    held = [fine(f"{protection.kind}: {words}") for words in protection.details]
    return [*held, *(fine(f"not covered: {words}") for words in protection.gaps)]


def skill_findings(config: Config) -> list[Finding]:
    """Skills that cannot be used, each with its reason."""
    from hermes.skills.scan import Scan
    from hermes.skills.session_index import skill_roots, skills_cache

    roots = skill_roots(config.settings, config.home, "")
    scanned = Scan(roots, skills_cache(config.home)).look()
    bad = [
        warning("skill", f"{each.folder}: {each.problem}", fix="correct its SKILL.md")
        for each in scanned.broken[:MOST_NAMED]
    ]
    return bad or [fine(f"{len(scanned.entries)} skills can be used")]


def model_findings(config: Config) -> list[Finding]:
    """Whether a model is chosen and everything is there to ask it. Nothing is contacted."""
    secrecy = Secrecy(config, {})
    models = Models(config, World(), env={}, is_secret=secrecy.is_secret)
    models.accounts.tell_secrets(secrecy.watch)
    why = explain_choice(models, config)
    if why.winner is not None:
        return [_winner(why.winner)]
    if config.settings.local.model:
        return [fine(f"the model {config.settings.local.model} runs inside this process")]
    fix = (
        "`hermes config set OPENROUTER_API_KEY …` (or another provider's), start a local server, "
        "or `hermes model install`"
    )
    return [warning("model", "no model is configured", fix=fix)]


def _winner(reason: Reason) -> Finding:
    if not reason.problem:
        return fine(
            f"{reason.model or 'its usual model'} ({reason.provider}) answers: {reason.why}"
        )
    words, _, fix = reason.problem.rstrip(".").partition("; ")
    return fault("model", words, fix=fix or "`hermes model` chooses another", key="model.provider")
