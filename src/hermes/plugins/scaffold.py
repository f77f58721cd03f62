"""Creates a new plugin from a template: manifest, working code and a test."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal

from hermes.core.errors import UsageError
from hermes.plugins.manifest import FILE, NAME

ScaffoldKind = Literal[
    "tool", "hook", "command", "image_gen", "memory", "web", "tts", "stt", "context_engine",
    "platform",
]  # fmt: skip
# Kinds with their own folder.
FOLDERS: dict[ScaffoldKind, str] = {
    "image_gen": "image_gen", "memory": "memory", "web": "web", "tts": "tts", "stt": "stt",
    "context_engine": "context_engine", "platform": "platforms",
}  # fmt: skip

_TEST = """\
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("plugin", Path(__file__).parents[1] / "__init__.py")
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


"""


def create_plugin(folder: Path, name: str, kind: ScaffoldKind) -> tuple[Path, ...]:
    """Writes the files into the new `folder` and returns them."""
    if not re.fullmatch(NAME, name):
        raise UsageError(
            f"{name!r} is not a valid plugin name: use lower-case letters, digits, -, _."
        )
    if folder.exists():
        raise UsageError(f"{folder} already exists.")
    template = files("hermes.plugins").joinpath("templates", f"{kind}.txt").read_text("utf-8")
    plain = re.sub(r"[^a-z0-9_]", "_", name)
    filled = Template(template).substitute(name=name, tool=f"{plain}_hello", command=name)
    manifest, code, test = re.split(r"\n--- \S+\n", filled)
    texts = {FILE: manifest, "__init__.py": code, f"tests/test_{plain}.py": _TEST + test}
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tuple(folder / file for file in texts)
