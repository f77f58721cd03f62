"""Write src/hermes/skills/frontmatter.json: the parsed frontmatter of the bundled skills."""

from __future__ import annotations

import json

from hermes.skills.discovery import CATEGORY_FILE
from hermes.skills.seeding import BUNDLED_SKILLS
from hermes.skills.skill import COMPILED, MAIN, digest, parse_yaml, split_frontmatter


def compiled() -> str:
    paths = sorted((*BUNDLED_SKILLS.rglob(MAIN), *BUNDLED_SKILLS.rglob(CATEGORY_FILE)))
    blocks = [split_frontmatter(path.read_text(encoding="utf-8"))[0] for path in paths]
    found = {digest(block): parse_yaml(block) for block in blocks}
    return json.dumps(found, ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    COMPILED.write_text(compiled(), encoding="utf-8")
