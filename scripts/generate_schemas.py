"""Write src/hermes/tools/schemas.json from the signatures of the built-in tools."""

from __future__ import annotations

import json

from hermes.codec.json import plain
from hermes.tools.catalogue import SCHEMAS, TARGETS, load_target


def schemas() -> str:
    specs = [plain(load_target(TARGETS[name]).spec) for name in sorted(TARGETS)]
    return json.dumps(specs, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    text = schemas()
    SCHEMAS.write_text(text, encoding="utf-8")
    print(f"{SCHEMAS}: {len(json.dumps(json.loads(text), separators=(',', ':')))} bytes when sent")
