"""The skills of one home: store, invocation, bundles, curator and hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.environment import read_env_file
from hermes.core.errors import UsageError
from hermes.core.events import SessionOpened
from hermes.policy.threat_scan import local_in, untrusted_in
from hermes.skills.discovery import SkillEntry, SkillEnvironment, SkillScanner, is_available
from hermes.skills.files import Tree, content_hash, folder_hash, read_tree
from hermes.skills.history import Cause, Version
from hermes.skills.hub.lock import HubLedger
from hermes.skills.invocation import (
    Bundle,
    Bundles,
    RenderContext,
    command_text,
    leading_skills,
)
from hermes.skills.service import (
    VERSION_DIGITS,
    Readiness,
    SkillService,
    readiness,
)
from hermes.skills.session_index import (
    plugin_skills_folder,
    seeds_of,
    skill_roots,
    skills_cache,
    skills_folder,
    skills_here,
)
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange, SkillStore
from hermes.skills.usage import SkillUsageStore
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.core.session_request import SessionRequest
    from hermes.net.http import HttpClient
    from hermes.skills.curator import Curator
    from hermes.skills.hub.skill_hub import SkillHub


class SkillCall(Value):
    """The message that results from skill commands. `origin` names untrusted skills in it."""

    text: str
    origin: str


class SkillLibrary:
    """Everything about the skills of one home. Reads and writes files only when asked. `cwd` is
    a project whose own skills are included if it is trusted."""

    def __init__(self, run: RunContext, http: HttpClient, cwd: str = "") -> None:
        self._run = run
        self._http = http
        self.folder = skills_folder(run.home)
        self.seeds = seeds_of(run.home)
        self.ledger = HubLedger(self.folder, run.world.clock)
        self.usages = SkillUsageStore(self.folder, run.world.clock)
        self.bundles = Bundles(run.home.root / "skill-bundles")
        self.scan = SkillScanner(skill_roots(run.settings, run.home, cwd), skills_cache(run.home))
        self.store = SkillStore(
            self.folder,
            self.scan,
            run.world,
            bundled=self.seeds.manifest,
            installed=self.ledger.hashes,
            guard=_guard if run.settings.skills.guard_agent_created else None,
        )

    @property
    def hub(self) -> SkillHub:
        # Imported late: few runs use the hub.
        from hermes.skills.hub.skill_hub import SkillHub

        return SkillHub(self._run, self._http, self)

    def job_skills(self) -> tuple[str, ...]:
        """Return the names of skills that scheduled jobs use, including disabled jobs."""
        from hermes.cron.store import JobStore

        lists = (job.get("skills") for job in JobStore(self._run.home, self._run.world).all())
        return tuple(str(name) for names in lists if isinstance(names, list) for name in names)

    def curator(self) -> Curator:
        # Imported late: sessions that use skills do not need it.
        from hermes.skills.curator import Curator

        settings, clock = self._run.settings.curator, self._run.world.clock
        return Curator(self.store, self.usages, clock, settings, needed=self.job_skills)

    def seed(self) -> None:
        """Copy the bundled skills into the home, as the first session does."""
        self.seeds.seed_if_new(__version__)

    def here(self, platform: str, tools: tuple[str, ...] = ()) -> SkillEnvironment:
        return skills_here(self._run.settings, platform, tools)

    def list_usable(self, platform: str) -> tuple[SkillEntry, ...]:
        """List the skills available on this surface."""
        here = self.here(platform)
        return tuple(entry for entry in self.scan.scan().entries if is_available(entry, here))

    def variables(self) -> dict[str, str]:
        """Return the current variables of the process and of `.env`."""
        return {**self._run.env, **read_env_file(self._run.home).variables}

    def loading(self, session_id: str = "") -> RenderContext:
        skills = self._run.settings.skills
        return RenderContext(
            session_id=session_id, template_vars=skills.template_vars, settings=skills.config
        )

    def tool_service(
        self,
        opened: SessionOpened,
        *,
        session_id: str,
        cause: Callable[[str], Cause],
        staged: bool = False,
    ) -> SkillService:
        settings = self._run.settings.skills
        return SkillService(
            store=self.store,
            usages=self.usages,
            here=self.here(opened.source, opened.tools),
            home=self._run.home.root,
            cause=cause,
            variables=self.variables,
            loading=self.loading(session_id),
            inline_seconds=settings.inline_shell_timeout if settings.inline_shell else 0,
            is_untrusted=self._is_untrusted,
            staged=staged or settings.write_approval,
        )

    async def expand_call(self, line: str, platform: str, session_id: str) -> SkillCall | None:
        """Expand a line that starts with skill commands or a bundle name; None for other lines."""
        scanned = self.scan.scan()
        off = self.here(platform).disabled
        names, instruction = leading_skills(
            line, lambda name: name not in off and scanned.find(name) is not None
        )
        word, _, rest = line.strip().removeprefix("/").partition(" ")
        if not names and word in self.bundles.names():
            bundle = self.bundles.read(word)
            names = bundle.skills
            instruction = "\n".join(text for text in (bundle.instruction, rest.strip()) if text)
        if not names:
            return None
        entries = tuple(self.store.find(name) for name in names)
        text = await self._use(entries, instruction, session_id)
        untrusted = [entry.name for entry in entries if self._is_untrusted(entry.name)]
        if untrusted:
            return SkillCall(text=text, origin=f"skill:{','.join(untrusted)}")
        written = frozenset(origin for entry in entries for origin in self.store.origins(entry))
        return SkillCall(text=text, origin=", ".join(untrusted_in(written)) or "user")

    async def preload(self, names: Sequence[str]) -> str:
        """Return the text of skills for the start of a session. Raises NotFound for a missing
        skill, and UsageError for an untrusted one, since the text becomes instructions."""
        entries = tuple(self.store.find(name) for name in names)
        if untrusted := [entry.name for entry in entries if self._is_untrusted(entry.name)]:
            raise UsageError(
                f"The skill {untrusted[0]} has an untrusted author and cannot be preloaded; "
                f"use /{untrusted[0]} in the chat, or ask for it in a message."
            )
        return await self._use(entries, "", "")

    async def _use(self, entries: tuple[SkillEntry, ...], instruction: str, session_id: str) -> str:
        for entry in entries:
            self.usages.count_use(entry.name, folder_hash(entry.folder)[:VERSION_DIGITS])
        return await command_text(entries, instruction, self.loading(session_id))

    def tree(self, name: str) -> Tree:
        return read_tree(Path(self.store.find(name).folder))

    def readiness(self, entry: SkillEntry) -> Readiness:
        system = self.here("cli").system
        return readiness(entry.skill, system, self.variables(), self._run.home.root)

    def make_bundle(
        self, name: str, skills: tuple[str, ...], description: str, instruction: str
    ) -> str:
        """Write a bundle and return its path. Raises NotFound for a missing skill."""
        for skill in skills:
            self.store.find(skill)
        bundle = Bundle(name=name, description=description, skills=skills, instruction=instruction)
        return str(self.bundles.write(bundle))

    def reset(self, name: str, *, restore: bool) -> str:
        """Reset a bundled skill to its original and return the id of the new version."""
        tree, category = self.seeds.tree(name)
        if self.store.scan().find(name) is None and not restore:
            raise UsageError(f"You removed {name}; use --restore to restore it.")
        change = SkillChange(
            name=name,
            action="reset",
            cause=Cause(who="bundled"),
            files=dict(tree),
            whole=True,
            category=category,
        )
        version = self.store.apply(change)
        self.seeds.forget(name, content_hash(tree))
        return version.id

    def previous_version(self, name: str) -> str:
        """Return the id of the newest older version with files. Raises UsageError when there is
        none."""
        versions = self.store.history(name)
        active = next((one for one in reversed(versions) if one.state == "active"), None)
        older = [
            one.id
            for one in versions
            if one.state == "past" and not one.removed and one.hash != (active and active.hash)
        ]
        if not older:
            raise UsageError(
                f"There is no older version of {name}; `hermes skills history {name}` lists all."
            )
        return older[-1]

    def approve(self, version: Version, reason: str = "") -> Version:
        """Activate a proposed version and count the change."""
        done = self.store.promote(version, reason)
        if done.action == "create":
            self.usages.record_creation(done.name, "agent")
        else:
            self.usages.record_patch(done.name)
        return done

    def revert(self, name: str, id: str) -> Version:
        """Revert on behalf of the user."""
        return self.store.revert(name, id, Cause(who="user"))

    def _is_untrusted(self, name: str) -> bool:
        """Return whether the skill comes from a plugin or an untrusted author."""
        if (plugin_skills_folder(self._run.home) / name).is_dir():
            return True
        entry = self.ledger.list_installed().get(name)
        return entry is not None and entry.trust_level == "community"


def session_skills(
    library: SkillLibrary,
    session_id: str,
    opened: SessionOpened,
    *,
    find_session: Callable[[], Session | None],
) -> SkillService:
    """Build the service of the skill tools of one session."""

    def cause(call: str) -> Cause:
        session = find_session()
        model = session.transcript.model if session else opened.model
        in_view = session.transcript.origins() if session else frozenset[str]()
        origins = untrusted_in(in_view) or local_in(in_view)
        return Cause(who="agent", session=session_id, call=call, model=model, origins=origins)

    return library.tool_service(opened, session_id=session_id, cause=cause)


def _guard(name: str, tree: Tree) -> None:
    """Scan skills written by the agent like installed ones."""
    from hermes.skills.hub.lock import scan_files

    found = scan_files(tree)
    if found.verdict == "dangerous":
        worst = [f"{each.id} (line {each.line} of {each.file or MAIN})" for each in found.findings]
        raise UsageError(f"The scan rejects the skill {name}: {', '.join(worst[:5])}.")


async def with_skills(library: SkillLibrary, request: SessionRequest, names: str) -> SessionRequest:
    """Return the request with the text of these comma-separated skills. Raises NotFound for a
    missing one."""
    text = await library.preload([name.strip() for name in names.split(",") if name.strip()])
    return request.with_extra("\n\n".join(part for part in (request.extra, text) if part))
