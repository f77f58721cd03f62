"""Service files, and what the service manager is told."""

from __future__ import annotations

import plistlib
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.core.errors import ConfigError, UsageError
from hermes.surfaces.gateway.services import (
    NO_MANAGER,
    ServiceSpec,
    find_service,
    launchd_plist,
    service_spec,
    service_suffix,
    systemd_unit,
)

SPEC = ServiceSpec(
    suffix="",
    home="/home/ann/.hermes",
    python="/opt/hermes/bin/python3",
    path="/usr/local/bin:/usr/bin",
    virtual_env="/opt/hermes",
)

UNIT = """\
[Unit]
Description=Hermes messaging gateway (/home/ann/.hermes)
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
ExecStart=/opt/hermes/bin/python3 -m hermes.surfaces.cli.entry gateway run
ExecReload=/bin/kill -USR1 $MAINPID
Environment=PATH=/usr/local/bin:/usr/bin
Environment=VIRTUAL_ENV=/opt/hermes
Environment=HERMES_HOME=/home/ann/.hermes
Environment=HERMES_GATEWAY_SERVICE=1
WorkingDirectory=/home/ann/.hermes
Restart=always
RestartSec=5
RestartForceExitStatus=75
RestartPreventExitStatus=78
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


def test_the_unit_of_a_user() -> None:
    assert systemd_unit(SPEC) == UNIT


def test_the_unit_of_the_system_has_a_user_and_a_watchdog() -> None:
    spec = replace(
        SPEC,
        user="ann",
        group="staff",
        user_home="/home/ann",
        drain_seconds=90,
        watchdog_seconds=30,
    )
    lines = systemd_unit(spec).splitlines()
    for line in (
        "Type=notify",
        "User=ann",
        "Group=staff",
        "Environment=HOME=/home/ann",
        "TimeoutStopSec=120",
        "WatchdogSec=30",
        "WantedBy=multi-user.target",
    ):
        assert line in lines


def test_odd_paths_are_quoted() -> None:
    spec = replace(SPEC, home="/home/ann lee/100%", python='/opt/my "python"')
    unit = systemd_unit(spec)
    assert 'Environment="HERMES_HOME=/home/ann lee/100%%"' in unit
    assert 'ExecStart="/opt/my \\"python\\"" -m hermes.surfaces.cli.entry gateway run' in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("kind", ["user", "system"])
def test_systemd_accepts_the_unit(kind: str, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    spec = replace(SPEC, home=str(home), python="/bin/true", watchdog_seconds=20)
    if kind == "system":
        spec = replace(spec, user="root", group="root", user_home="/root")
    unit = tmp_path / spec.unit
    unit.write_text(systemd_unit(spec))
    done = subprocess.run(
        ["systemd-analyze", f"--{kind}", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if spec.unit in line]
    assert complaints == []


def test_the_agent_of_launchd() -> None:
    assert plistlib.loads(launchd_plist(SPEC)) == {
        "Label": "ai.hermes.gateway",
        "ProgramArguments": [
            "/opt/hermes/bin/python3",
            "-m",
            "hermes.surfaces.cli.entry",
            "gateway",
            "run",
        ],
        "EnvironmentVariables": {
            "PATH": "/usr/local/bin:/usr/bin",
            "VIRTUAL_ENV": "/opt/hermes",
            "HERMES_HOME": "/home/ann/.hermes",
            "HERMES_GATEWAY_SERVICE": "1",
        },
        "WorkingDirectory": "/home/ann/.hermes",
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": 60,
        "StandardOutPath": "/home/ann/.hermes/logs/gateway.out.log",
        "StandardErrorPath": "/home/ann/.hermes/logs/gateway.err.log",
    }


def test_every_home_and_profile_has_a_service_of_its_own(tmp_path: Path) -> None:
    default = Home(tmp_path / ".hermes")
    work = Home(tmp_path / ".hermes" / "profiles" / "work")
    elsewhere = Home(tmp_path / "elsewhere")
    suffixes = [service_suffix(home, tmp_path) for home in (default, work, elsewhere)]
    assert suffixes[:2] == ["", "-work"]
    assert len(suffixes[2]) == 9
    assert service_suffix(elsewhere, tmp_path) == suffixes[2]


@pytest.fixture
def systemctl(tmp_path: Path) -> Path:
    """A `systemctl` that writes down how it is called, and fails when a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "systemctl"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
        f"[ -e {tmp_path}/fails ] && {{ echo 'Failed: no bus' >&2; exit 1; }}\nexit 0\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def test_a_service_is_installed_and_removed(
    systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"HOME": str(systemctl), "PATH": f"{systemctl}/bin:/usr/bin:/bin"}
    monkeypatch.setenv("PATH", env["PATH"])
    service = find_service(service_spec(Home(systemctl / ".hermes"), env), env)
    with pytest.raises(ConfigError, match="hermes gateway install"):
        service.start()
    service.install(at_login=True)
    assert service.path == systemctl / ".config/systemd/user/hermes-gateway.service"
    assert service.is_current
    service.start()
    service.uninstall()
    assert not service.is_installed
    assert (systemctl / "calls").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable hermes-gateway.service",
        "--user start hermes-gateway.service",
        "--user disable --now hermes-gateway.service",
        "--user daemon-reload",
    ]


def test_a_refusal_of_the_service_manager_is_told(
    systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"HOME": str(systemctl), "PATH": f"{systemctl}/bin:/usr/bin:/bin"}
    monkeypatch.setenv("PATH", env["PATH"])
    (systemctl / "fails").touch()
    service = find_service(service_spec(Home(systemctl / ".hermes"), env), env)
    with pytest.raises(ConfigError, match="no bus"):
        service.install(at_login=True)


def test_a_stale_service_file_is_noticed(systemctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"HOME": str(systemctl), "PATH": f"{systemctl}/bin:/usr/bin:/bin"}
    monkeypatch.setenv("PATH", env["PATH"])
    home = Home(systemctl / ".hermes")
    find_service(service_spec(home, env), env).install(at_login=True)
    changed = find_service(service_spec(home, env, drain_seconds=300), env)
    assert changed.is_installed
    assert not changed.is_current


def test_without_a_service_manager_the_next_step_is_told(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    with pytest.raises(ConfigError) as told:
        find_service(service_spec(Home(tmp_path / ".hermes"), env), env)
    assert str(told.value) == NO_MANAGER


def test_an_unknown_account_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no user"):
        service_spec(Home(tmp_path), {"HOME": str(tmp_path)}, run_as_user="no-such-account")
