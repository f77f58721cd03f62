"""A real OpenSSH server on a loopback port, with keys made for the test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from hermes.config.execution_settings import TerminalSettings

SSHD = shutil.which("sshd", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")


def missing() -> str:
    """Why no server can be started here; "" when one can."""
    if SSHD is None or shutil.which("ssh") is None:
        return "openssh-server and openssh-client are not installed"
    return ""


# The exchange of keys that would be chosen otherwise takes a tenth of a second of each connection.
QUICK_EXCHANGE = "curve25519-sha256"


class Sshd:
    """`home` is the home folder that sessions see; `stop` cuts all connections."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
                check=True,
            )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
            f"PermitRootLogin yes\nSetEnv HOME={self.home} PRIVATE_API_KEY=hidden\n"
        )
        kind, key = (folder / "host.pub").read_text().split()[:2]
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")
        (folder / "ssh_config").write_text(
            f"Host *\n  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile /dev/null\n"
            f"  KexAlgorithms {QUICK_EXCHANGE}\n"
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def settings(self, *, key: str = "", config: str = "") -> TerminalSettings:
        return TerminalSettings(
            backend="ssh",
            ssh_host="127.0.0.1",
            ssh_port=self.port,
            ssh_key=key or str(self.folder / "user"),
            ssh_config=config or str(self.folder / "ssh_config"),
        )

    def start(self) -> None:
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        assert SSHD
        config = str(self.folder / "sshd_config")
        # A session of its own, so that the connections can be cut with it.
        self.process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", config], stderr=subprocess.DEVNULL, start_new_session=True
        )
        for _ in range(6_000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.01)
        raise AssertionError("sshd does not listen")

    def cut(self) -> None:
        """End the connections that stand; the server listens on."""
        assert self.process
        listener = self.process.pid
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and _parent(entry) == listener:
                os.kill(int(entry.name), 9)

    def stop(self) -> None:
        if self.process:
            self.cut()
            self.process.terminate()
            self.process.wait()
            self.process = None


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
