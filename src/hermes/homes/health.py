"""Looks at what several rooms keep in a home and says what is wrong with it."""

from __future__ import annotations

from contextlib import closing

from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.errors import JournalError
from hermes.core.world import World
from hermes.credentials.redaction import SecretRedactor
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.verify import VerifyProblem, verify
from hermes.models.explaining import CandidateReason, explain_choice
from hermes.models.models import Models
from hermes.workspaces.confinement.scope import ConfinementReport

MOST_NAMED = 5


async def journal_findings(home: Home) -> list[Diagnostic]:
    """Reads every record once; nothing is made where there is no journal."""
    if not home.journal.exists():
        return [ok("there is no journal yet; the first session makes it")]
    try:
        async with SqliteJournal(home.journal, World()) as journal:
            problems = await verify(journal)
    except JournalError as error:
        fix = f"move {home.journal} aside and restore a backup"
        return [fault("journal", f"the journal cannot be read: {error}", fix=fix)]
    if not problems:
        return [ok(f"{home.journal} is whole and unchanged")]
    words = f"{len(problems)} damaged records are set aside; all others stay usable"
    named = [fault("record", _record_words(problem)) for problem in problems[:MOST_NAMED]]
    return [fault("journal", words, fix="restore a backup to get them back"), *named]


def _record_words(problem: VerifyProblem) -> str:
    if not problem.session_id:
        return f"in the file: {problem.why}"
    return f"record {problem.n} of session {problem.session_id}: {problem.why}"


async def index_findings(home: Home) -> list[Diagnostic]:
    with closing(JournalFile(home.journal)) as source:
        problems = await SearchIndex(home.index, source).check()
    if problems:
        fix = "`hermes doctor --fix` makes it anew from the journal"
        return [warning("index", problem, fix=fix) for problem in problems[:MOST_NAMED]]
    state = "is sound" if home.index.exists() else "is made with the first search"
    return [ok(f"the search index {state}")]


async def rebuild_index(home: Home) -> None:
    with closing(JournalFile(home.journal)) as source:
        await SearchIndex(home.index, source).rebuild()


async def confinement_findings(config: Config) -> list[Diagnostic]:
    """Where commands run, and what stands between them and the machine, without flattery.
    Nothing is started or contacted."""
    from hermes.config.run_context import RunContext
    from hermes.workspaces.placement import describe_protection
    from hermes.workspaces.shell import describe_backend, is_remote_backend

    terminal = config.settings.terminal
    undo = config.settings.checkpoints.enabled and not is_remote_backend(terminal)
    found = [_undo_finding(config, undo)]
    env = process_environment()
    run = RunContext(config, env=env, world=World(), redactor=SecretRedactor(config, env))
    if is_remote_backend(terminal):
        from hermes.workspaces.remote.backends import find_missing

        if why := find_missing(run):
            words, _, fix = why.rstrip(".").partition("; ")
            fix = fix or "`hermes config set terminal.backend local`"
            return [*found, fault("backend", words, fix=fix, key="terminal.backend")]
        found.append(ok(describe_backend(terminal)))
    return [*found, *_protection_findings(await describe_protection(run))]


def _undo_finding(config: Config, undo: bool) -> Diagnostic:
    if undo:
        return ok("what is done to files can be taken back (`hermes undo`)")
    if config.settings.checkpoints.enabled:
        return warning("undo", "what is done to files on another machine cannot be undone")
    fix = "`hermes config set checkpoints.enabled true`"
    return warning("undo", "what is done to files cannot be taken back", fix=fix)


def _protection_findings(protection: ConfinementReport) -> list[Diagnostic]:
    if not protection.confined:
        why = "; ".join(protection.gaps)
        fix = "`hermes config set terminal.confinement auto`, or install bubblewrap"
        return [warning("confinement", f"commands run with all your rights ({why})", fix=fix)]
    held = [ok(f"{protection.kind}: {words}") for words in protection.details]
    return [*held, *(ok(f"not covered: {words}") for words in protection.gaps)]


def skill_findings(config: Config) -> list[Diagnostic]:
    """Skills that cannot be used, each with its reason."""
    from hermes.skills.catalogue import SkillScanner
    from hermes.skills.session_index import skill_roots, skills_cache

    roots = skill_roots(config.settings, config.home, "")
    scanned = SkillScanner(roots, skills_cache(config.home)).scan()
    bad = [
        warning("skill", f"{each.folder}: {each.problem}", fix="correct its SKILL.md")
        for each in scanned.broken[:MOST_NAMED]
    ]
    return bad or [ok(f"{len(scanned.entries)} skills can be used")]


def model_findings(config: Config) -> list[Diagnostic]:
    """Whether a model is chosen and everything is there to ask it. Nothing is contacted."""
    secrecy = SecretRedactor(config, {})
    models = Models(config, World(), env={}, is_secret=secrecy.is_secret)
    models.accounts.watch_secrets(secrecy.watch)
    why = explain_choice(models, config)
    if why.winner is not None:
        return [_winner(why.winner)]
    if config.settings.local.model:
        return [ok(f"the model {config.settings.local.model} runs inside this process")]
    fix = (
        "`hermes config set OPENROUTER_API_KEY …` (or another provider's), start a local server, "
        "or `hermes model install`"
    )
    return [warning("model", "no model is configured", fix=fix)]


def _winner(reason: CandidateReason) -> Diagnostic:
    if not reason.problem:
        return ok(f"{reason.model or 'its usual model'} ({reason.provider}) answers: {reason.why}")
    words, _, fix = reason.problem.rstrip(".").partition("; ")
    return fault("model", words, fix=fix or "`hermes model` chooses another", key="model.provider")
