"""Writes the pages in docs/reference from the program itself, or checks that they are current.

python scripts/generate_reference.py            write them
python scripts/generate_reference.py --check    exit 1 when one is out of date
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes.codec.json import encode
from hermes.config.migrate import newest_version
from hermes.config.schema import (
    ANY_NAME,
    Setting,
    all_settings,
    describe,
    fields_of,
    is_section,
    section_by_name,
)
from hermes.config.settings import OVERRIDES, Settings

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by scripts/generate_reference.py; change the program, not this page. -->"

CONFIG_INTRODUCTION = f"""\
# Settings

{NOTICE}

Settings live in `config.yaml` in the home folder (`$HERMES_HOME`, else `~/.hermes`), secrets in
`.env` beside it. `hermes config set KEY VALUE` changes one and keeps your comments;
`hermes config explain KEY` says where a value comes from and what it hides.

The first of these places that names a setting wins:

1. an option of the command line;
2. a choice made in the running session;
3. a variable of the last column, in the process environment;
4. the same variable in `.env`;
5. `config.yaml`;
6. a variable marked *weak*, in the process environment, then in `.env`;
7. the default.

For secrets, `.env` wins over the process environment. `${{NAME}}` in a value of `config.yaml` is
replaced by that variable or secret. An unknown key or a value of the wrong kind is told and passed
over; nothing stops because of it. `_config_version` (now {newest_version()}) is kept by
`hermes config migrate`.
"""


def config_page() -> str:
    groups: dict[str, list[Setting]] = {}
    for setting in all_settings(Settings):
        groups.setdefault(".".join(setting.path[:-1]), []).append(setting)
    parts = [CONFIG_INTRODUCTION]
    meanings = dict(section_meanings(Settings))
    for name, settings in groups.items():
        parts.append(f"## {f'`{name}`' if name else 'Top level'}\n")
        if meanings.get(name):
            parts.append(f"{meanings[name]}\n")
        parts.append(table(settings))
    return "\n".join(parts)


def section_meanings(section: type, before: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """What the docstrings of the sections say, by the key of the section."""
    for name, setting in fields_of(section).items():
        path = (*before, name)
        kind = setting.kind
        if held := section_by_name(kind):
            path, kind = (*path, ANY_NAME), held
        if is_section(kind):
            yield ".".join(path), inspect.cleandoc(kind.__doc__ or "").replace("\n", " ")
            yield from section_meanings(kind, path)


def table(settings: list[Setting]) -> str:
    rows = ["| Key | Kind | Default | Meaning | Variable |", "| --- | --- | --- | --- | --- |"]
    rows += [
        f"| `{setting.path[-1]}` | {describe(setting.kind)} | {default_words(setting)} "
        f"| {setting.meaning} | {variables(setting.key)} |"
        for setting in settings
    ]
    return "\n".join(rows) + "\n"


def default_words(setting: Setting) -> str:
    return f"`{encode(setting.default).decode()}`"


def variables(key: str) -> str:
    return ", ".join(
        f"`{o.variable}`"
        + (" (weak)" if o.weak else "")
        + (f" (1 means `{o.when_true}`)" if o.when_true else "")
        for o in OVERRIDES
        if o.key == key
    )


# Page: the function that writes it.
PAGES: dict[str, Callable[[], str]] = {"config.md": config_page}


def main(arguments: list[str]) -> int:
    stale = []
    for name, write in PAGES.items():
        path, text = FOLDER / name, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run scripts/generate_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
