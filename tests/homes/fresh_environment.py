"""Fresh virtual environments without a network: the dependencies come from the one of the tests."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

SITE = Path(distribution("click").locate_file("."))  # type: ignore[arg-type]
LEFT_OUT = ("acp", "agent_client_protocol", "hermes", "_editable_impl_hermes", "__pycache__")
SECONDS = 240


class FreshEnvironment:
    """A virtual environment with pip and the dependencies of Hermes, but without Hermes and the
    package of the extra `acp`, which lies in the folder `wheels` instead."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.wheels = wheels
        make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
        subprocess.run(make, check=True, timeout=SECONDS)
        borrowed = folder / "borrowed"
        borrowed.mkdir()
        for path in SITE.iterdir():
            if not path.name.startswith(LEFT_OUT):
                (borrowed / path.name).symlink_to(path)
        site = next((folder / "venv").glob("lib/python3*/site-packages"))
        (site / "borrowed.pth").write_text(f"{borrowed}\n")

    def env(self) -> Mapping[str, str]:
        return {
            "PATH": f"{self.folder / 'venv' / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "HERMES_HOME": str(self.home),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": "/dev/null",
        }

    def pip(self, *words: str) -> None:
        python = self.folder / "venv" / "bin" / "python"
        run = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--no-build-isolation", *words],
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert run.returncode == 0, run.stderr

    def __call__(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of shell in a folder outside of any checkout."""
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )


def build_wheel_of(package: str, folder: Path) -> None:
    """Pack the installed files of a real package into the wheel that they came from."""
    found = distribution(package)
    name = re.sub("-", "_", found.metadata["Name"])
    wheel = folder / f"{name}-{found.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in found.files or ():
            path = Path(str(file.locate()))
            inside = not str(file).startswith("..") and path.suffix != ".pyc"
            if inside and file.name not in ("INSTALLER", "REQUESTED"):
                archive.write(path, str(file))
