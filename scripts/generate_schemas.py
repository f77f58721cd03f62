"""Write src/hermes/tools/schemas.json from the `@tool` declarations of the built-in tools."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import hermes
from hermes.codec.json import plain
from hermes.core.tools import Tool, ToolDisplay
from hermes.tools.catalogue import SCHEMAS, ToolDeclaration

SOURCES = Path(hermes.__file__).parent


def find_tools() -> list[ToolDeclaration]:
    """All tools with a toolset in modules of the package, by name."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        if "\n@tool(" not in path.read_text("utf-8"):
            continue
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        for name, tool in vars(module).items():
            if isinstance(tool, Tool) and tool.toolset:
                target = f"{module.__name__}:{name}"
                found[tool.name] = ToolDeclaration(
                    spec=tool.spec,
                    target=target,
                    toolset=tool.toolset,
                    kind=tool.kind,
                    display=tool.display or ToolDisplay(),
                    conditional=tool.conditional,
                )
    return [found[name] for name in sorted(found)]


def schemas() -> str:
    return json.dumps([plain(each) for each in find_tools()], ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    SCHEMAS.write_text(schemas(), encoding="utf-8")
    specs = [plain(each.spec) for each in find_tools()]
    print(f"{SCHEMAS}: {len(json.dumps(specs, separators=(',', ':')))} bytes when sent")
