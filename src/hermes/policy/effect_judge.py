"""Judges each kind of effect, before approvals, the owner's rules and untrusted text are
considered."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, assert_never

from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    ChangeSkill,
    Decision,
    DeletePath,
    Deny,
    Draw,
    Effect,
    FetchUrl,
    ReadHistory,
    ReadPath,
    Remember,
    RunCommand,
    Schedule,
    SignalProcess,
    UseSecret,
    UseTool,
    WritePath,
)
from hermes.core.ports import ConversationText, ShellSetup
from hermes.policy import outgoing, requests
from hermes.policy.findings import ONCE, OUTWARD, Finding, Level, Verdict, combine, decision_of
from hermes.policy.places.places import SafeRoots
from hermes.policy.process_input import judge_input
from hermes.policy.programs.records import flagged
from hermes.policy.session_files import NEVER, SessionFiles
from hermes.policy.shell.state import UNKNOWN
from hermes.policy.sources import OPEN, PLUGIN, Sources, local_origins, untrusted_origins

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.policy.commands import Commands
    from hermes.policy.places.files import Files
    from hermes.policy.rules import PolicySettings, Surroundings
    from hermes.policy.urls.url_policy import UrlPolicy

NETWORK = frozenset(("network", "network_out"))


class EffectVerdict(Value):
    """The decision about an effect and what it rests on."""

    decision: Decision
    # The effect as the owner's rules match it: the whole command, then its simple commands.
    texts: tuple[str, ...] = ()
    open_: tuple[str, ...] = ()  # the commands that a rule would have to allow
    single: bool = False  # whether it is one simple command
    outward: str = ""  # the outgoing effect that untrusted text must not cause, or ""
    outward_category: str = "network"  # the category of `outward`
    # The outgoing effect that text of files must not cause, or "" if the person asked for it.
    steered: str = ""
    requested: bool = False  # whether the person asked for exactly this command
    tainted_files: tuple[str, ...] = ()  # the tainted files that are involved
    sources: tuple[str, ...] = ()  # where the untrusted text behind them came from


class EffectJudge:
    """Judges the effects of one session. Parts are created with the first effect of their kind."""

    def __init__(self, settings: PolicySettings, **surroundings: Unpack[Surroundings]) -> None:
        self._settings = settings
        self._shell = surroundings.get("shell", ShellSetup)
        self._confined = surroundings.get("confined", lambda: False)
        self._remote = surroundings.get("remote", False)
        self._shipped = surroundings.get("shipped", lambda _: False)
        self._folders = (surroundings["root"], surroundings["home"], surroundings["state"])
        self._resolver = surroundings.get("resolver")
        self._now = surroundings.get("now", time.monotonic)
        self._safe = SafeRoots(settings.safe_roots, remote=self._remote)
        since = NEVER if settings.since is None or self._remote else settings.since
        self._session_files = SessionFiles(
            since, surroundings.get("tainted_files"), surroundings.get("texts")
        )
        self._sources = Sources(
            surroundings["root"], surroundings["home"], settings.trusted, self._session_files
        )

    @cached_property
    def files(self) -> Files:
        from hermes.policy.places.files import Files

        return Files(*self._folders, now=self._now, remote=self._remote, safe=self._safe)

    @cached_property
    def urls(self) -> UrlPolicy:
        from hermes.policy.urls.url_policy import make_url_policy

        settings = self._settings
        return make_url_policy(self._resolver, settings.private, settings.blocked, self._now)

    def untrusted_origins(self, origins: Iterable[str]) -> tuple[str, ...]:
        return (*self._sources.from_start, *untrusted_origins(origins))

    def local_origins(self, origins: Iterable[str]) -> tuple[str, ...]:
        return local_origins(origins)

    def origin(self, effect: Effect) -> str:
        match effect:
            case RunCommand():
                return self._sources.of(effect, self.verdict(effect))
            case SignalProcess(action="write", command=command, cwd=cwd):
                return self._sources.of(effect, self.verdict(RunCommand(script=command, cwd=cwd)))
            case _:
                return self._sources.of(effect)

    @cached_property
    def _commands(self) -> Commands:
        # A session may never run a command.
        from hermes.policy.commands import Commands
        from hermes.policy.path_effects import Paths

        paths = Paths(*self._folders, remote=self._remote, shipped=self._shipped, safe=self._safe)
        return Commands(paths, self._session_files, self._shell, self._confined)

    def verdict(self, effect: RunCommand) -> Verdict:
        return self._commands.verdict(effect)

    def judge(self, effect: Effect, seen: ConversationText | None) -> EffectVerdict:
        match effect:
            case RunCommand():
                return self._command(effect.script, self.verdict(effect), effect.cwd, seen)
            case ReadPath():
                return EffectVerdict(decision=self.files.read(effect.path))
            case WritePath():
                return self._write(effect.path, seen)
            case DeletePath():
                return EffectVerdict(decision=self.files.delete(effect.path))
            case SignalProcess(action="write"):
                return self._judge_input(effect, seen)
            case SignalProcess():
                return EffectVerdict(decision=Allow())
            case FetchUrl():
                return self._fetch(effect, seen)
            case ReadHistory():
                return EffectVerdict(decision=Allow(harmless=True))
            case Remember():
                return _persistent(
                    "It would be remembered in later sessions.",
                    asked=requests.asks_to_remember(effect.text, seen),
                )
            case ChangeSkill():
                return _persistent(
                    f"It would change the skill {effect.name}.",
                    asked=requests.asks_to_change_skill(effect.name, seen),
                )
            case Schedule():
                return _persistent(
                    "It would change what runs while nobody is present.",
                    asked=requests.asks_to_schedule(effect.action, effect.text, seen),
                )
            case CallServer():
                return self._server(effect, seen)
            case Draw():
                return self._draw(effect, seen)
            case UseTool():
                # The effects of the tool are judged one by one.
                return EffectVerdict(decision=Allow())
            case UseSecret():
                reason = f"{effect.recipient} would be given the secret {effect.name}."
                return EffectVerdict(decision=Ask(reason=reason, category="credentials"))
            case _:
                assert_never(effect)

    def _write(self, path: str, seen: ConversationText | None) -> EffectVerdict:
        decision = self.files.write(path)
        if isinstance(decision, Allow) and self.files.places.is_agent_file(path):
            reason = f"It would change {path}, which instructs agents."
            return EffectVerdict(
                decision=decision,
                outward=reason,
                outward_category="agent_context",
                steered="" if requests.asks_to_write(path, seen) else reason,
            )
        return EffectVerdict(decision=decision)

    def _fetch(self, effect: FetchUrl, seen: ConversationText | None) -> EffectVerdict:
        glance, host = self.urls.quick_check(effect.url), outgoing.host_of(effect.url)
        if isinstance(glance, Deny):
            return EffectVerdict(decision=glance)
        if effect.sends_body or effect.method.upper() not in outgoing.SAFE_METHODS:
            reason = f"It sends data to {host}."
            return EffectVerdict(decision=Ask(reason=reason, category="network_out", scopes=ONCE))
        if piece := outgoing.find_carried(effect.url, seen):
            return EffectVerdict(decision=_sends(piece, host))
        if outgoing.is_known(effect.url, seen, self._settings.hosts):
            return EffectVerdict(decision=glance)
        reason = f"It goes to {host} with a URL that is new to this session."
        value = outgoing.find_steered(effect.url, seen, self._settings.hosts)
        steered = _sends_new(value, host) if value else ""
        return EffectVerdict(decision=glance, outward=reason, steered=steered)

    def _server(self, effect: CallServer, seen: ConversationText | None) -> EffectVerdict:
        if effect.server.startswith(PLUGIN) and not effect.server.endswith(OPEN):
            # The plugin is sandboxed.
            return EffectVerdict(decision=Allow())
        reason = f"It would send something to {effect.server.removesuffix(OPEN)}."
        closed = outgoing.is_closed(effect.arguments, seen, self._sources.of(effect))
        outward = "" if closed else reason
        steered = outward if outgoing.find_disclosed(effect.arguments, seen) else ""
        return EffectVerdict(
            decision=Allow(), outward=outward, outward_category="network_out", steered=steered
        )

    def _draw(self, effect: Draw, seen: ConversationText | None) -> EffectVerdict:
        request = encode({"prompt": effect.prompt, "images": effect.images}).decode()
        reason = f"It would send the image prompt to {effect.provider} ({effect.host})."
        closed = outgoing.is_closed(request, seen, f"draw:{effect.provider}")
        outward = "" if closed else reason
        # Images may be generated in parallel: none changes anything.
        decision = Allow(harmless=True)
        steered = outward if outgoing.find_disclosed(request, seen) else ""
        return EffectVerdict(
            decision=decision, outward=outward, outward_category="network_out", steered=steered
        )

    def _judge_input(self, effect: SignalProcess, seen: ConversationText | None) -> EffectVerdict:
        verdict = judge_input(effect, self.verdict)
        judged = self._command(effect.text, verdict, effect.cwd or UNKNOWN, seen)
        if isinstance(judged.decision, Allow) and judged.decision.harmless:
            # The program receives the text, so no other effect may run in parallel.
            return replace(judged, decision=Allow())
        return judged

    def _command(
        self, text: str, verdict: Verdict, cwd: str, seen: ConversationText | None
    ) -> EffectVerdict:
        decision = decision_of(verdict.worst)
        asked = [each.command for each in verdict.findings if each.level is Level.ASKED]
        outward = self._outward(verdict, cwd, seen)
        steered = self._steered(verdict, cwd, seen)
        tainted_files, sources = self._find_tainted_files(verdict, cwd)
        if isinstance(decision, Allow):
            decision = replace(decision, offline=_runs_offline(verdict))
            # A fetch whose address carries text that was read before sends that text.
            for command in verdict.commands:
                if piece := outgoing.find_carried_by(command, seen):
                    urls = outgoing.contacted_urls(command)
                    host = outgoing.host_of(urls[0]) if urls else "a name server"
                    decision = _sends(piece, host)
                    break
        return EffectVerdict(
            decision=decision,
            texts=(text, *verdict.commands),
            open_=tuple(dict.fromkeys(asked)),
            single=len(verdict.commands) == 1,
            outward=outward.reason if outward else "",
            outward_category=(outward or steered or _NOTHING).category,
            steered=steered.reason if steered else "",
            requested=bool(asked) and all(requests.asks_for_command(e, seen) for e in asked),
            tainted_files=tainted_files,
            sources=sources,
        )

    def _find_tainted_files(
        self, verdict: Verdict, cwd: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Find the tainted files that a command involves, and their sources."""
        lists: tuple[str, ...] = ()
        if self._session_files.has_tainted_files() and any(map(_installs, verdict.findings)):
            lists = tuple(each for each in self._lists(cwd) if self._session_files.sources(each))
        found = {
            *verdict.sources,
            *(by for each in lists for by in self._session_files.sources(each)),
        }
        return tuple(dict.fromkeys((*verdict.tainted_files, *lists))), tuple(sorted(found))

    def clear(self, paths: Iterable[str]) -> None:
        """Trust the current content of these files from now on."""
        self._session_files.clear(paths)

    def _lists(self, cwd: str) -> tuple[str, ...]:
        return self._session_files.manifests(cwd, self._folders[0])

    def _outward(self, verdict: Verdict, cwd: str, seen: ConversationText | None) -> Finding | None:
        """Return the worst finding that untrusted text must not cause."""
        found = [each for each in verdict.findings if self._leads_out(each, cwd, seen)]
        for command in verdict.commands:
            for url in outgoing.contacted_urls(command):
                if not outgoing.is_known(url, seen, self._settings.hosts):
                    host = outgoing.host_of(url)
                    why = f"It goes to {host} with a URL that is new to this session."
                    found.append(
                        Finding(level=Level.WORK, category="network", reason=why, command=command)
                    )
        return combine((*found, *verdict.hidden)) if found or verdict.hidden else None

    def _steered(self, verdict: Verdict, cwd: str, seen: ConversationText | None) -> Finding | None:
        """Return the worst finding that text of files must not cause: it sends data, persists or
        escalates, and the person did not ask for it."""
        hosts = self._settings.hosts
        found = [each for each in verdict.findings if self._is_steered(each, verdict, cwd, seen)]
        for command in verdict.commands:
            carried = (
                (outgoing.host_of(url), outgoing.find_steered(url, seen, hosts))
                for url in outgoing.contacted_urls(command)
            )
            looked_up = ("a name server", outgoing.find_steered_name(command, seen))
            for host, value in (*carried, looked_up):
                if value:
                    why = _sends_new(value, host)
                    found.append(Finding(level=Level.WORK, category="network", reason=why))
        return combine((*found, *verdict.hidden)) if found or verdict.hidden else None

    def _is_steered(
        self, finding: Finding, verdict: Verdict, cwd: str, seen: ConversationText | None
    ) -> bool:
        if finding.category not in OUTWARD or requests.asks_for_command(finding.command, seen):
            return False
        if finding.category == "agent_context":
            is_agent_file = self.files.places.is_agent_file
            paths = [path for path in verdict.touched if is_agent_file(path)]
            return not paths or not all(requests.asks_to_write(path, seen) for path in paths)
        if finding.category != "network":
            return True
        asked = seen is not None and seen.user_wrote("install")
        return _installs(finding) and not asked and bool(self._lists(cwd))

    def _leads_out(self, finding: Finding, cwd: str, seen: ConversationText | None) -> bool:
        if finding.category not in OUTWARD:
            return False
        if finding.category != "network":
            return True
        if _installs(finding):
            return bool(self._lists(cwd))
        return not outgoing.is_plain_fetch(finding.command, seen, self._settings.hosts)


def _runs_offline(verdict: Verdict) -> bool:
    """Whether a command runs new code in which no use of a network was found."""
    new = verdict.uses_new_files or bool(verdict.tainted_files)
    return new and not any(each.category in NETWORK for each in verdict.findings)


def _installs(finding: Finding) -> bool:
    return finding.category == "network" and finding.command.partition(" ")[0] in flagged(
        "installs"
    )


_NOTHING = Finding(level=Level.HARMLESS, category="", reason="")


def _persistent(reason: str, *, asked: bool) -> EffectVerdict:
    return EffectVerdict(
        decision=Allow(),
        outward=reason,
        outward_category="persistence",
        steered="" if asked else reason,
    )


def _shorten(piece: str) -> str:
    return piece if len(piece) <= 40 else f"{piece[:40]}…"


def _sends_new(value: str, host: str) -> str:
    return f"It sends {_shorten(value)!r}, which is new to this session, to {host}."


def _sends(piece: str, host: str) -> Ask:
    reason = f"It sends {_shorten(piece)!r}, which was read before, to {host}."
    return Ask(reason=reason, category="network_out", scopes=ONCE)
