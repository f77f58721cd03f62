"""What is known about the gateways of a home: their process, their platforms, what they owe, and
what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.app.app import App
from hermes.codec.json import DecodeError, decode
from hermes.codec.values import Value
from hermes.commands.formatting import one_line
from hermes.config.diagnostics import Diagnostic, fault, ok, warning
from hermes.config.environment import process_environment
from hermes.config.home import Home, profile_home, profile_names, root_home
from hermes.config.load import Config
from hermes.core.errors import HermesError
from hermes.core.world import World
from hermes.cron.store import HEARTBEAT_SECONDS as HEARTBEAT_LIMIT_SECONDS
from hermes.cron.store import JobStore
from hermes.journal.deliveries import DeliveryLedger, ReceivedMessage
from hermes.surfaces.gateway.locks import read_process, running_process
from hermes.surfaces.gateway.manifests import enabled_platforms
from hermes.surfaces.gateway.platform import Inbound
from hermes.surfaces.gateway.state_file import (
    HEARTBEAT_SECONDS,
    GatewayState,
    PlatformState,
    read_state,
)

# A running gateway that has not written its state for so long hangs.
STALE_SECONDS = 4 * HEARTBEAT_SECONDS
# Messages without an answer that are named.
MOST_NAMED = 3


class GatewayStatus(Value):
    """A gateway as `hermes gateway status` shows it."""

    profile: str
    home: str
    running: bool
    pid: int = 0
    uptime_seconds: float = 0.0
    version: str = ""
    gateway_state: str = "stopped"
    platforms: dict[str, PlatformState] = {}
    # Turns that run now.
    running_turns: int = 0
    # Since the scheduler was seen; None when there is none.
    scheduler_age_seconds: float | None = None
    heartbeat_age_seconds: float = 0.0
    exit_reason: str = ""
    dead_tasks: tuple[str, ...] = ()


def gateway_status(home: Home, now: float) -> GatewayStatus:
    """The state of the gateway of a home. After a crash the file says more than is true, so the
    process decides."""
    process = running_process(home)
    state = read_state(home) or GatewayState()
    if process is None:
        return GatewayStatus(
            profile=home.profile,
            home=str(home.root),
            running=False,
            gateway_state="stopped"
            if state.gateway_state != "startup_failed"
            else "startup_failed",
            platforms=state.platforms if state.gateway_state == "startup_failed" else {},
            exit_reason=state.exit_reason,
        )
    return GatewayStatus(
        profile=home.profile,
        home=str(home.root),
        running=True,
        pid=process.pid,
        uptime_seconds=round(max(0.0, now - state.started_at), 1),
        version=process.version,
        gateway_state=state.gateway_state,
        platforms=state.platforms,
        running_turns=state.running,
        scheduler_age_seconds=JobStore(home, World()).heartbeat_age(),
        heartbeat_age_seconds=round(max(0.0, now - state.updated_at), 1),
        dead_tasks=tuple(name for name, task in state.tasks.items() if task.state == "dead"),
    )


def all_statuses(home: Home, now: float) -> tuple[GatewayStatus, ...]:
    """The gateways of all profiles."""
    root = root_home(home)
    homes = [root, *(profile_home(root, name) for name in profile_names(root))]
    return tuple(gateway_status(each, now) for each in homes)


class OwedWork(Value):
    """Messages without an answer, and posts that are not confirmed."""

    messages: int
    posts: int
    uncertain: int
    # The oldest messages: platform, beginning of the text, age.
    oldest: tuple[str, ...] = ()


async def owed_work(app: App) -> OwedWork:
    if not app.context.home.journal.exists():
        return OwedWork(messages=0, posts=0, uncertain=0)
    ledger = DeliveryLedger(app.journal)
    posts = await ledger.open_posts()
    uncertain = sum(post.state == "uncertain" for post in posts)
    messages, now = await ledger.open_messages(), app.context.world.clock.now()
    return OwedWork(
        messages=len(messages),
        posts=len(posts) - uncertain,
        uncertain=uncertain,
        oldest=tuple(
            f"{each.platform} {describe_message(each)}, {duration(max(0.0, now - each.at))} ago"
            for each in messages[:MOST_NAMED]
        ),
    )


def describe_message(message: ReceivedMessage) -> str:
    """The beginning of a message that waits for its answer."""
    try:
        text = one_line(decode(Inbound, message.body).text, 60)
    except DecodeError:
        text = ""
    return f"“{text}”" if text else "a file"


async def status_section(app: App) -> dict[str, str]:
    """The section of `hermes status`."""
    found = gateway_status(app.context.home, app.context.world.clock.now())
    owed = await owed_work(app)
    lines = {"gateway": describe(found)}
    lines |= {name: describe_platform(state) for name, state in found.platforms.items()}
    lines["owed"] = describe_owed(owed)
    return lines


def describe(status: GatewayStatus) -> str:
    if not status.running:
        why = " (the last start failed)" if status.gateway_state == "startup_failed" else ""
        return f"stopped{why}"
    return f"{status.gateway_state} (process {status.pid}, {duration(status.uptime_seconds)})"


def describe_platform(state: PlatformState) -> str:
    words: list[str] = [state.state]
    if state.account:
        words.append(f"as {state.account}")
    if state.error_message:
        words.append(f"- {state.error_message}")
    return " ".join(words)


def describe_owed(owed: OwedWork) -> str:
    parts = [
        f"{count} {word}"
        for count, word in (
            (owed.messages, "unanswered messages"),
            (owed.posts, "unsent posts"),
            (owed.uncertain, "posts with unknown outcome"),
        )
        if count
    ]
    named = f" ({'; '.join(owed.oldest)})" if owed.oldest else ""
    return f"{', '.join(parts)}{named}" if parts else "nothing"


def duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3_600)
    if hours >= 48:
        return f"{hours // 24} d"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds % 60)} s"


def gateway_findings(config: Config) -> list[Diagnostic]:
    """What `hermes doctor` says about the gateway. Contacts nobody."""
    env, world = process_environment(), World()
    status = gateway_status(config.home, world.clock.now())
    findings = _process_findings(config.home, status) + _platform_findings(config, env, status)
    try:
        jobs = enabled_jobs(config)
    except HermesError as error:
        return [*findings, fault("jobs", str(error), fix="`hermes cron list`")]
    age = JobStore(config.home, world).heartbeat_age()
    if jobs and (age is None or age > HEARTBEAT_LIMIT_SECONDS):
        text = f"{jobs} scheduled jobs are enabled, but no scheduler runs"
        findings.append(warning("scheduler", text, fix="`hermes gateway run` or `install`"))
    return findings


def enabled_jobs(config: Config) -> int:
    """The number of scheduled jobs that are not paused."""
    return sum(bool(job.get("enabled")) for job in JobStore(config.home, World()).all())


def _process_findings(home: Home, status: GatewayStatus) -> list[Diagnostic]:
    if not status.running:
        stale = read_process(home)
        if stale is not None:
            text = f"gateway.pid names process {stale.pid}, which is gone; the gateway crashed"
            fix = "`hermes gateway run` continues its work; `hermes logs gateway` shows why"
            return [warning("pid", text, fix=fix)]
        return [ok("the gateway is not running")]
    if status.heartbeat_age_seconds > STALE_SECONDS:
        text = f"the gateway (process {status.pid}) does not answer"
        return [fault("gateway", text, fix="`hermes gateway restart`")]
    findings = [ok(f"the gateway is {describe(status)}")]
    for name in status.dead_tasks:
        text = f"the background task {name} was given up"
        findings.append(fault("task", text, fix="`hermes gateway restart`"))
    return findings


def _platform_findings(
    config: Config, env: Mapping[str, str], status: GatewayStatus
) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    for platform in enabled_platforms(config, env):
        name, title = platform.manifest.name, platform.manifest.title
        state = status.platforms.get(name)
        setup = f"`hermes gateway setup {name}`"
        if platform.missing:
            text = f"{title} is enabled, but {' and '.join(platform.missing)} is not set"
            findings.append(fault("platform", text, fix=setup))
        elif state is not None and state.state == "fatal":
            findings.append(fault("platform", f"{title}: {state.error_message}", fix=setup))
        elif state is not None and state.state == "retrying":
            text = f"{title} is not connected ({state.error_message})"
            findings.append(warning("platform", text))
        else:
            words = state.state if state else "configured"
            findings.append(ok(f"{title} is {words}"))
    return findings
