"""Health checks of a home, for `hermes doctor`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.environment import process_environment
from hermes.config.home import Home, profile_home, profile_names, root_home
from hermes.config.load import Config, load
from hermes.context.project_files import MOST_CHARS
from hermes.core.errors import HermesError, JournalError, UsageError
from hermes.core.world import World
from hermes.credentials.accounts import open_accounts
from hermes.credentials.redaction import SecretRedactor
from hermes.homes.archive_files import text_of
from hermes.homes.profiles import DEFAULT
from hermes.journal.high_water import HighWaterMark
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.verify import verify
from hermes.memory.entries import FILE_NAMES, entries_size, split_entries
from hermes.models.browser import find_answer
from hermes.models.model_ref import NO_MODEL, OFFLINE
from hermes.models.models import Models
from hermes.tools.toolbox import wanted_names

MAX_LISTED = 5


async def journal_findings(home: Home) -> list[Diagnostic]:
    """Check every record of the journal. Creates nothing if there is no journal."""
    if not home.journal.exists():
        if losses := HighWaterMark(home.journal).losses(None):
            fix = f"restore {home.journal.name} from a backup"
            return [fault("journal", each, fix=fix) for each in losses]
        return [ok("there is no journal yet; the first session creates it")]
    try:
        async with SqliteJournal(home.journal, World()) as journal:
            problems = await verify(journal)
    except JournalError as error:
        fix = f"move {home.journal} aside and restore a backup"
        return [fault("journal", f"the journal cannot be read: {error}", fix=fix)]
    if not problems:
        return [ok(f"{home.journal} is complete and unmodified")]
    text = f"{len(problems)} damaged records are skipped; all others stay usable"
    named = [
        fault(
            "record",
            f"record {each.n} of session {each.session_id}: {each.why}"
            if each.session_id
            else f"in the file: {each.why}",
        )
        for each in problems[:MAX_LISTED]
    ]
    return [fault("journal", text, fix="restore them from a backup"), *named]


async def index_findings(home: Home) -> list[Diagnostic]:
    with closing(JournalFile(home.journal)) as source:
        problems = await SearchIndex(home.index, source).check()
    if problems:
        fix = "`hermes doctor --fix` rebuilds it from the journal"
        return [warning("index", problem, fix=fix) for problem in problems[:MAX_LISTED]]
    state = "is valid" if home.index.exists() else "is built with the first search"
    return [ok(f"the search index {state}")]


async def rebuild_index(home: Home) -> None:
    with closing(JournalFile(home.journal)) as source:
        await SearchIndex(home.index, source).rebuild()


async def confinement_findings(config: Config) -> list[Diagnostic]:
    """Describe where commands run, and what protects the machine from them. Starts and contacts
    nothing."""
    from hermes.config.run_context import RunContext
    from hermes.workspaces.placement import describe_protection
    from hermes.workspaces.shell import describe_backend, is_remote_backend

    terminal = config.settings.terminal
    undo = config.settings.checkpoints.enabled and not is_remote_backend(terminal)
    if undo:
        findings = [ok("file changes can be undone (`hermes undo`)")]
    elif config.settings.checkpoints.enabled:
        findings = [warning("undo", "file changes on another machine cannot be undone")]
    else:
        fix = "`hermes config set checkpoints.enabled true`"
        findings = [warning("undo", "file changes cannot be undone", fix=fix)]
    env = process_environment()
    run = RunContext(config, env=env, world=World(), redactor=SecretRedactor(config, env))
    if is_remote_backend(terminal):
        from hermes.workspaces.remote.backends import find_missing

        if why := find_missing(run):
            text, _, fix = why.rstrip(".").partition("; ")
            fix = fix or "`hermes config set terminal.backend local`"
            return [*findings, fault("backend", text, fix=fix, key="terminal.backend")]
        findings.append(ok(describe_backend(terminal)))
    protection = await describe_protection(run)
    if not protection.confined:
        why = "; ".join(protection.gaps)
        fix = "`hermes config set terminal.confinement auto`, or install bubblewrap"
        text = f"commands run with all your permissions ({why})"
        return [*findings, warning("confinement", text, fix=fix)]
    findings += [ok(f"{protection.kind}: {text}") for text in protection.details]
    return findings + [ok(f"not covered: {text}") for text in protection.gaps]


def skill_findings(config: Config) -> list[Diagnostic]:
    """List skills that cannot be used, with the reason."""
    from hermes.skills.discovery import SkillScanner
    from hermes.skills.session_index import skill_roots, skills_cache

    roots = skill_roots(config.settings, config.home, "")
    scanned = SkillScanner(roots, skills_cache(config.home)).scan()
    bad = [
        warning("skill", f"{each.folder}: {each.problem}", fix="correct its SKILL.md")
        for each in scanned.broken[:MAX_LISTED]
    ]
    return bad or [ok(f"{len(scanned.entries)} skills can be used")]


async def model_findings(config: Config) -> list[Diagnostic]:
    """Check which model answers. Contacts only a server that a chat would ask for its models."""
    env = process_environment()
    redactor = SecretRedactor(config, env)
    models = Models(config, World(), env=env, is_secret=redactor.is_secret)
    models.accounts.watch_secrets(redactor.watch)
    try:
        answer = await find_answer(models, config)
    finally:
        await models.close()
    if answer.problem:
        text, _, fix = answer.problem.rstrip(".").partition("; ")
        fix = fix or "`hermes model` selects another"
        return [fault("model", text, fix=fix, key="model.provider")]
    if answer.provider == OFFLINE and answer.why == NO_MODEL:
        fix = (
            "`hermes config set OPENROUTER_API_KEY …` (or another provider's), or `hermes setup`, "
            "which finds keys, servers and model files"
        )
        return [warning("model", NO_MODEL, fix=fix)]
    return [ok(f"{answer.describe()} answers: {answer.why}")]


# Suffixes of variables that hold bot tokens.
BOT_TOKENS = ("_BOT_TOKEN", "_APP_TOKEN")


async def login_findings(config: Config) -> list[Diagnostic]:
    """List the last known state of each key and login. Makes no requests."""
    async with open_accounts(config, env=process_environment()) as accounts:
        rows = await accounts.rows()
    findings = []
    for row in rows:
        name = f"{row.provider} {row.label or row.id}"
        if row.status == "dead":
            fix = f"`hermes login {row.provider}`" if row.type == "oauth" else "`hermes auth add`"
            findings.append(warning("login", f"{name} is no longer valid ({row.why})", fix=fix))
        elif row.status == "ok":
            findings.append(ok(f"{name} is ready"))
        else:
            findings.append(ok(f"{name} is {row.status}"))
    return findings or [ok("there are no keys or logins except those in variables")]


def memory_findings(config: Config) -> list[Diagnostic]:
    """Check the size of the files that are part of every session's prompt."""
    settings, folder = config.settings.memory, config.home.memories
    limits = {"memory": settings.memory_char_limit, "user": settings.user_char_limit}
    findings = [
        _length(folder / name, entries_size(split_entries(text)), limits[target])
        for target, name in FILE_NAMES.items()
        if (text := text_of(folder / name))
    ]
    if soul := text_of(config.home.soul):
        longest = config.settings.context_file_max_chars or MOST_CHARS
        findings.append(_length(config.home.soul, len(soul), longest))
    return findings or [ok("memory is empty, and there is no SOUL.md")]


def _length(path: Path, chars: int, limit: int) -> Diagnostic:
    if chars > limit:
        text = f"{path} has {chars:,} characters; only {limit:,} are used"
        return warning("memory", text, fix=f"shorten {path}")
    return ok(f"{path} has {chars:,} of {limit:,} characters")


async def job_findings(config: Config) -> list[Diagnostic]:
    """Check the scheduled jobs of a home, and whether a scheduler runs."""
    from hermes.config.run_context import RunContext
    from hermes.cron.checks import job_problems
    from hermes.cron.service import CronService

    if not (config.home.root / "cron").is_dir():
        return [ok("there are no scheduled jobs")]
    env = process_environment()
    run = RunContext(config, env=env, world=World(), redactor=SecretRedactor(config, env))
    async with SqliteJournal(config.home.journal, run.world) as journal:
        jobs = CronService(run, journal)
        problems = await job_problems(run, jobs)
        count = len(await jobs.all(disabled=False))
    fix = "`hermes cron status` and `hermes cron runs` show the details"
    found = [warning("jobs", text.rstrip("."), fix=fix) for text in problems[:MAX_LISTED]]
    return found or [ok(f"{count} scheduled jobs are in order")]


def tool_findings(config: Config) -> list[Diagnostic]:
    try:
        names = wanted_names(config.settings)
    except UsageError as error:
        fix = "`hermes tools list` lists them, `hermes config set toolsets A,B` selects"
        return [fault("toolset", str(error).rstrip("."), fix=fix, key="toolsets")]
    if not names:
        return [warning("tools", "sessions have no tools", fix="`hermes tools enable file`")]
    return [ok(f"sessions have {len(names)} tools")]


def profile_findings(home: Home) -> list[Diagnostic]:
    """List faults of the profiles, and tokens that two of them share: a platform delivers each
    message to only one listener per token, so both would lose messages."""
    root = root_home(home)
    findings: list[Diagnostic] = []
    profiles_by_token: dict[tuple[str, str], list[str]] = {}
    for name in (DEFAULT, *profile_names(root)):
        try:
            config = load(profile_home(root, name), env={})
        except HermesError as error:
            if name != DEFAULT:
                fix = "`hermes profile rename` it"
                findings.append(warning("profile", f"{name}: {error}", fix=fix))
            continue
        for variable in config.secrets.names():
            if variable.endswith(BOT_TOKENS) and (value := config.secrets.get(variable)):
                profiles_by_token.setdefault((variable, value), []).append(name)
        broken = [each for each in config.diagnostics if each.level == "error"]
        if broken and name != DEFAULT:
            fix = f"`hermes -p {name} doctor`"
            findings.append(warning("profile", f"{name}: {broken[0].text}", fix=fix))
        elif name != DEFAULT:
            findings.append(ok(f"{name} at {root.profiles / name}"))
    for (variable, _), names in profiles_by_token.items():
        if len(names) > 1:
            text = f"{variable} is the same in {' and '.join(names)}; only one can use it"
            fix = f"`hermes -p {names[-1]} config set {variable} …` with a separate token"
            findings.append(warning("token", text, fix=fix))
    return findings or [ok("there is only the default profile")]
