"""Write src/hermes/skills/frontmatter.json: the parsed frontmatter of the bundled skills."""

from __future__ import annotations

import json

from hermes.skills.frontmatter import COMPILED, digest, parse_yaml, split
from hermes.skills.scan import CATEGORY_FILE
from hermes.skills.seeding import SHIPPED
from hermes.skills.skill import MAIN


def compiled() -> str:
    paths = sorted((*SHIPPED.rglob(MAIN), *SHIPPED.rglob(CATEGORY_FILE)))
    blocks = [split(path.read_text(encoding="utf-8"))[0] for path in paths]
    found = {digest(block): parse_yaml(block) for block in blocks}
    return json.dumps(found, ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    COMPILED.write_text(compiled(), encoding="utf-8")
