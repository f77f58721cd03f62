"""Looks at what several rooms keep in a home and says what is wrong with it."""

from __future__ import annotations

from contextlib import closing

from hermes.config.findings import Finding, fault, fine, warning
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.settings import ProviderSettings
from hermes.core.errors import JournalError
from hermes.core.world import World
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.verify import Problem, verify
from hermes.providers.endpoint import host_of, is_local
from hermes.providers.vendor import Vendor, shipped

# Providers that need nobody else.
WITHIN = ("embedded", "offline")
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


def model_findings(config: Config) -> list[Finding]:
    """Whether a model is chosen and its key is there. Nothing is contacted."""
    model = config.settings.model
    if model.provider:
        return [_provider_finding(config, model.provider)]
    if config.settings.local.model:
        return [fine(f"the model {config.settings.local.model} runs inside this process")]
    for vendor in shipped().vendors.values():
        for name in vendor.keys:
            if config.secrets.get(name):
                return [fine(f"{name} is there, so {vendor.label} answers")]
    if model.base_url:
        return [fine(f"{host_of(model.base_url)} answers")]
    fix = (
        "`hermes config set OPENROUTER_API_KEY …` (or another provider's), start a local server, "
        "or `hermes model install`"
    )
    return [warning("model", "no model is configured", fix=fix)]


def _provider_finding(config: Config, name: str) -> Finding:
    if name in WITHIN:
        return fine(f"{name} is configured and runs on this machine")
    own = config.settings.providers.get(name.removeprefix("custom:"))
    vendor = shipped().vendor(name)
    if own is None and vendor is None:
        known = ", ".join((*shipped().vendors, *config.settings.providers, *WITHIN))
        fix = f"`hermes config set model.provider …`, one of {known}"
        return fault("model", f"there is no provider {name!r}", fix=fix, key="model.provider")
    names = _key_names(own, vendor)
    if _has_key(config, own, names):
        return fine(f"{name} is configured and has a key")
    if not names or _needs_no_key(config, own, vendor):
        return fine(f"{name} is configured and needs no key")
    fix = f"`hermes config set {names[0]} …`"
    return fault("key", f"{name} is configured, but {names[0]} is not set", fix=fix, key=names[0])


def _key_names(own: ProviderSettings | None, vendor: Vendor | None) -> tuple[str, ...]:
    if own is not None and own.key_env:
        return (own.key_env,)
    return vendor.keys if vendor is not None else ()


def _has_key(config: Config, own: ProviderSettings | None, names: tuple[str, ...]) -> bool:
    given = (config.settings.model.api_key, own.api_key if own is not None else "")
    if any(key and not key.startswith("${") for key in given):
        return True
    return any(config.secrets.get(name) for name in names)


def _needs_no_key(config: Config, own: ProviderSettings | None, vendor: Vendor | None) -> bool:
    if own is not None and own.key_env:
        return False
    url = (own.base_url if own is not None else "") or config.settings.model.base_url
    if url and is_local(host_of(url)):
        return True
    return vendor is not None and vendor.name == "custom"
