"""Bundles: several skills and an instruction under one name, one YAML file each."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.json import DecodeError, convert, encode
from hermes.codec.values import JsonObject, Value
from hermes.codec.whole_files import replace_file
from hermes.core.errors import NotFound, UsageError
from hermes.skills.frontmatter import read_frontmatter
from hermes.skills.skill import check_name


class Bundle(Value):
    name: str
    description: str = ""
    skills: tuple[str, ...] = ()
    instruction: str = ""


class Bundles:
    """`folder` is the home's `skill-bundles`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._folder.glob("*.yaml")))

    def all(self) -> tuple[Bundle, ...]:
        """Returns the readable bundles."""
        found: list[Bundle] = []
        for name in self.names():
            try:
                found.append(self.read(name))
            except UsageError:
                continue
        return tuple(found)

    def read(self, name: str) -> Bundle:
        try:
            text = (self._folder / f"{check_name(name)}.yaml").read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise NotFound(f"There is no bundle {name!r}.", near=self.names()) from error
        fields: JsonObject = read_frontmatter(text)
        try:
            return convert(Bundle, {**fields, "name": name})
        except DecodeError as error:
            raise UsageError(f"The bundle {name} is not valid: {error}.") from error

    def write(self, bundle: Bundle) -> Path:
        path = self._folder / f"{check_name(bundle.name)}.yaml"
        lines = [
            f"description: {_quote(bundle.description)}",
            "skills:",
            *(f"  - {check_name(name)}" for name in bundle.skills),
            f"instruction: {_quote(bundle.instruction)}",
        ]
        replace_file(path, ("\n".join(lines) + "\n").encode())
        return path

    def delete(self, name: str) -> None:
        try:
            (self._folder / f"{check_name(name)}.yaml").unlink()
        except FileNotFoundError as error:
            raise NotFound(f"There is no bundle {name!r}.", near=self.names()) from error


def _quote(text: str) -> str:
    """Quotes a YAML string; YAML accepts JSON escapes in double quotes."""
    return encode(text).decode()
