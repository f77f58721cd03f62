"""Services that keep the gateway running: systemd units for a user or the system, and launchd
agents."""

from __future__ import annotations

import os
import plistlib
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.values import Value
from hermes.config.home import Home, root_home, unwritable_error
from hermes.core.errors import ConfigError, UsageError

RESTART_CODE, FATAL_CODE = 75, 78
# Set in units, so that the process knows who restarts it.
SERVICE_VARIABLE = "HERMES_GATEWAY_SERVICE"
MIN_STOP_SECONDS = 60
STOP_RESERVE_SECONDS = 30
COMMAND_SECONDS = 90
READABLE = 0o644

NO_MANAGER = (
    "This machine has neither systemd nor launchd; run `hermes gateway run` in a terminal, a "
    "container or under a supervisor of your own."
)


class ServiceSpec(Value):
    """What a service starts."""

    # The part of its name that tells homes apart; "" for ~/.hermes.
    suffix: str
    home: str
    python: str
    path: str
    virtual_env: str = ""
    drain_seconds: float = 0.0
    watchdog_seconds: int = 0
    # For units of the system.
    user: str = ""
    group: str = ""
    user_home: str = ""

    @property
    def unit(self) -> str:
        return f"hermes-gateway{self.suffix}.service"

    @property
    def label(self) -> str:
        return f"ai.hermes.gateway{self.suffix}"

    @property
    def command(self) -> tuple[str, ...]:
        return (self.python, "-m", "hermes.surfaces.cli.entry", "gateway", "run")

    @property
    def environment(self) -> dict[str, str]:
        found = {"PATH": self.path, "VIRTUAL_ENV": self.virtual_env, "HERMES_HOME": self.home}
        found[SERVICE_VARIABLE] = "1"
        if self.user_home:
            found["HOME"] = self.user_home
        return {name: value for name, value in found.items() if value}


def service_suffix(home: Home, user_home: Path) -> str:
    """Tells the service of this home from those of other homes and profiles."""
    root = root_home(home)
    parts = [home.profile] if home.profile != "default" else []
    if root.root.resolve() != (user_home / ".hermes").resolve():
        parts.append(sha256(str(root.root.resolve()).encode()).hexdigest()[:8])
    return "".join(f"-{part}" for part in parts)


def service_spec(
    home: Home,
    env: Mapping[str, str],
    *,
    drain_seconds: float = 0.0,
    watchdog_seconds: int = 0,
    run_as_user: str = "",
) -> ServiceSpec:
    """The service of this home. With `run_as_user` it belongs to the system."""
    user_home = Path(env.get("HOME") or "~").expanduser()
    user = group = account_home = ""
    if run_as_user:
        try:
            account = pwd.getpwnam(run_as_user)
        except KeyError:
            raise UsageError(f"There is no user {run_as_user!r} on this machine.") from None
        user, account_home = account.pw_name, account.pw_dir
        user_home = Path(account_home)
        # The group database is loaded only for units of the system.
        import grp

        group = grp.getgrgid(account.pw_gid).gr_name
    in_environment = sys.prefix != sys.base_prefix
    python = Path(sys.prefix) / "bin" / Path(sys.executable).name
    return ServiceSpec(
        suffix=service_suffix(home, user_home),
        home=str(home.root.resolve()),
        python=str(python if python.exists() else sys.executable),
        path=env.get("PATH", os.defpath),
        virtual_env=sys.prefix if in_environment else "",
        drain_seconds=drain_seconds,
        watchdog_seconds=watchdog_seconds,
        user=user,
        group=group,
        user_home=account_home,
    )


def systemd_unit(spec: ServiceSpec) -> str:
    """The text of a unit for `systemctl --user`, or for the system when the service has a user."""
    stop_seconds = max(MIN_STOP_SECONDS, int(spec.drain_seconds) + STOP_RESERVE_SECONDS)
    service = [
        "Type=notify" if spec.watchdog_seconds else "Type=simple",
        *([f"User={spec.user}", f"Group={spec.group}"] if spec.user else []),
        f"ExecStart={' '.join(_quote(each) for each in spec.command)}",
        "ExecReload=/bin/kill -USR1 $MAINPID",
        *(f"Environment={_quote(f'{k}={v}')}" for k, v in spec.environment.items()),
        f"WorkingDirectory={_escape(spec.home)}",
        "Restart=always",
        "RestartSec=5",
        f"RestartForceExitStatus={RESTART_CODE}",
        f"RestartPreventExitStatus={FATAL_CODE}",
        "KillMode=mixed",
        "KillSignal=SIGTERM",
        f"TimeoutStopSec={stop_seconds}",
        *([f"WatchdogSec={spec.watchdog_seconds}"] if spec.watchdog_seconds else []),
    ]
    target = "multi-user.target" if spec.user else "default.target"
    sections = {
        "Unit": [
            f"Description=Hermes messaging gateway ({_escape(spec.home)})",
            "After=network-online.target",
            "Wants=network-online.target",
        ],
        "Service": service,
        "Install": [f"WantedBy={target}"],
    }
    return "\n".join(
        f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections.items()
    )


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _quote(text: str) -> str:
    escaped = _escape(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if set(escaped) & set(" \t'\"") else escaped


def launchd_plist(spec: ServiceSpec) -> bytes:
    logs = Path(spec.home) / "logs"
    return plistlib.dumps(
        {
            "Label": spec.label,
            "ProgramArguments": list(spec.command),
            "EnvironmentVariables": spec.environment,
            "WorkingDirectory": spec.home,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": max(MIN_STOP_SECONDS, int(spec.drain_seconds) + STOP_RESERVE_SECONDS),
            "StandardOutPath": str(logs / "gateway.out.log"),
            "StandardErrorPath": str(logs / "gateway.err.log"),
        }
    )


class Service:
    """The service of one home under one service manager. Commands raise ConfigError when it is
    not installed or the manager refuses."""

    def __init__(self, spec: ServiceSpec, path: Path, content: bytes) -> None:
        self.spec = spec
        self.path = path
        self._content = content

    @property
    def is_installed(self) -> bool:
        return self.path.exists()

    @property
    def is_current(self) -> bool:
        return self.is_installed and self.path.read_bytes() == self._content

    def install(self, *, at_login: bool) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, self._content, mode=READABLE)
        except OSError as error:
            raise unwritable_error(self.path, error) from error
        self._load(at_login)

    def uninstall(self) -> None:
        self._require()
        self._unload()
        self.path.unlink(missing_ok=True)
        self._forget()

    def start(self) -> None:
        self._require()
        self._start()

    def stop(self) -> None:
        self._require()
        self._stop()

    def restart(self) -> None:
        self._require()
        self._restart()

    def _require(self) -> None:
        if not self.is_installed:
            raise ConfigError(
                f"The service is not installed ({self.path}); install it with `hermes gateway "
                "install`, or run `hermes gateway run`."
            )

    def is_active(self) -> bool:
        raise NotImplementedError

    def _load(self, at_login: bool) -> None:
        raise NotImplementedError

    def _unload(self) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """Clean up after the file is gone."""

    def _start(self) -> None:
        raise NotImplementedError

    def _stop(self) -> None:
        raise NotImplementedError

    def _restart(self) -> None:
        raise NotImplementedError


class SystemdService(Service):
    def __init__(self, spec: ServiceSpec, user_home: Path, *, is_system: bool) -> None:
        folder = Path("/etc/systemd/system") if is_system else user_home / ".config/systemd/user"
        super().__init__(spec, folder / spec.unit, systemd_unit(spec).encode())
        self._command = ("systemctl",) if is_system else ("systemctl", "--user")

    def is_active(self) -> bool:
        return self.is_installed and not _run(*self._command, "is-active", self.spec.unit)[0]

    def _load(self, at_login: bool) -> None:
        self._call("daemon-reload")
        self._call("enable" if at_login else "disable", self.spec.unit)

    def _unload(self) -> None:
        self._call("disable", "--now", self.spec.unit)

    def _forget(self) -> None:
        self._call("daemon-reload")

    def _start(self) -> None:
        self._call("start", self.spec.unit)

    def _stop(self) -> None:
        self._call("stop", self.spec.unit)

    def _restart(self) -> None:
        self._call("restart", self.spec.unit)

    def _call(self, *arguments: str) -> None:
        _require_success(*self._command, *arguments)


class LaunchdService(Service):
    def __init__(self, spec: ServiceSpec, user_home: Path) -> None:
        path = user_home / "Library/LaunchAgents" / f"{spec.label}.plist"
        super().__init__(spec, path, launchd_plist(spec))
        self._domain = f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{self.spec.label}"

    def is_active(self) -> bool:
        return self.is_installed and not _run("launchctl", "print", self._target)[0]

    def _load(self, at_login: bool) -> None:
        _require_success("launchctl", "enable" if at_login else "disable", self._target)

    def _unload(self) -> None:
        _run("launchctl", "bootout", self._target)

    def _start(self) -> None:
        _run("launchctl", "bootstrap", self._domain, str(self.path))
        _require_success("launchctl", "kickstart", self._target)

    def _stop(self) -> None:
        _require_success("launchctl", "bootout", self._target)

    def _restart(self) -> None:
        _run("launchctl", "bootstrap", self._domain, str(self.path))
        _require_success("launchctl", "kickstart", "-k", self._target)


def find_service(spec: ServiceSpec, env: Mapping[str, str], *, is_system: bool = False) -> Service:
    """The service of this home under the service manager of this machine; ConfigError without
    one."""
    user_home = Path(env.get("HOME") or "~").expanduser()
    if sys.platform == "darwin":
        if is_system:
            raise UsageError("macOS has no system services for this; leave out --system.")
        return LaunchdService(spec, user_home)
    if shutil.which("systemctl", path=env.get("PATH")) is None:
        raise ConfigError(NO_MANAGER)
    return SystemdService(spec, user_home, is_system=is_system)


def _require_success(*command: str) -> None:
    code, output = _run(*command)
    if code:
        last = (output.strip().splitlines() or ["no output"])[-1]
        raise ConfigError(f"`{' '.join(command)}` failed ({last}); check the service manager.")


def _run(*command: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stderr or done.stdout
