"""Builds the policy of a home, and adds taint tracking to a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.config.execution_settings import SecuritySettings
from hermes.config.load import Config
from hermes.policy.owner_rules import Rule, load_rules
from hermes.policy.rules import Blocked, PolicySettings, SessionPolicy
from hermes.policy.taint.registry import open_taint_registry

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session_deps import SessionDeps
    from hermes.policy.taint.registry import TaintRegistry
    from hermes.policy.urls.url_policy import HostResolver

RULES_FILE = "policy.toml"


def policy_settings(
    config: Config, *, surface: str, approved: bool = False, since: float | None = None
) -> PolicySettings:
    """Return the policy settings of a home. `approved` answers all questions with yes when no user
    can be asked. `since` is the start of the session."""
    approvals, security = config.settings.approvals, config.settings.security
    blocklist = security.website_blocklist
    files = tuple(
        str(config.home.root / Path(each).expanduser()) for each in blocklist.shared_files
    )
    return PolicySettings(
        mode="off" if approved else approvals.mode,
        deny=approvals.deny,
        allowed=config.settings.command_allowlist,
        rules=(*load_rules(rules_path(config)), *untrusted_server_rules(config)),
        surface=surface,
        private=security.allow_private_urls,
        blocked=Blocked(domains=blocklist.domains, files=files) if blocklist.enabled else Blocked(),
        hosts=security.trusted_hosts,
        trusted=security.trusted_dirs,
        safe_roots=safe_roots(security),
        since=since,
    )


def untrusted_server_rules(config: Config) -> tuple[Rule, ...]:
    """Return the built-in rule for MCP servers that the settings mark as untrusted."""
    if all(own.trust == "full" for own in config.settings.mcp_servers.values()):
        return ()
    reason = "The settings mark this server as untrusted, and the tool is not declared read-only."
    # How effects name such a server: see `hermes.mcp.tools`.
    return (Rule(decision="ask", match="* (untrusted)/*", effect="server", reason=reason),)


def rules_path(config: Config) -> Path:
    return config.home.root / RULES_FILE


def owner_rules(config: Config) -> tuple[Rule, ...]:
    return load_rules(rules_path(config))


def policy_for(
    config: Config,
    cwd: str,
    surface: str = "",
    *,
    resolver: HostResolver | None = None,
    private: bool = False,
) -> SessionPolicy:
    """Return the policy of a session opened in this folder. It saves nothing. `private` permits
    private addresses, like the setting."""
    settings = policy_settings(config, surface=surface)
    return SessionPolicy(
        replace(settings, private=settings.private or private),
        root=os.path.realpath(cwd),
        home=str(Path.home()),
        state=str(config.home.root.resolve()),
        keep=lambda _: None,
        resolver=resolver,
        tainted_files=open_taint_registry(config.home.root),
    )


def safe_roots(security: SecuritySettings) -> tuple[str, ...]:
    """Return the folders to which the settings limit writes. An entry may list several paths in
    PATH syntax, as environment variables do."""
    paths = (path for entry in security.write_safe_roots for path in entry.split(os.pathsep))
    return tuple(str(Path(path).expanduser().absolute()) for path in paths if path.strip())


def track_taint(
    run: RunContext, session_id: str, rules: SessionPolicy, taint: TaintRegistry, parts: SessionDeps
) -> None:
    """Add taint tracking to the workspace of a session."""
    if parts.workspace.is_remote:
        from hermes.policy.taint.remote import track_remote_taint  # most sessions are local

        track_remote_taint(run, session_id, rules, taint, parts)
        return
    from hermes.policy.taint.tracker import LocalTaintTracker
    from hermes.policy.taint.workspace import TaintTrackedWorkspace

    parts.workspace = TaintTrackedWorkspace(
        parts.workspace, LocalTaintTracker(rules, taint, run.redactor.text)
    )
