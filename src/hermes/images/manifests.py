"""Reads what the plugin.yaml of a bundled provider says, without loading its code or a library."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.values import Value

MANIFEST = "plugin.yaml"


class Manifest(Value):
    """`requires_env` are variables that must have a value, `requires_login` an account that
    somebody must be logged in to. An `opt_in` provider counts only where the settings speak of
    it: nothing tells from here whether its server runs."""

    folder: str
    name: str
    version: str = ""
    description: str = ""
    requires_env: tuple[str, ...] = ()
    requires_login: str = ""
    opt_in: bool = False


def bundled_manifests(folder: Path) -> tuple[Manifest, ...]:
    """Those of all folders in this one, by name."""
    found = [_read(file) for file in folder.glob(f"*/{MANIFEST}")]
    return tuple(sorted(found, key=lambda each: each.name))


def _read(file: Path) -> Manifest:
    fields = dict(_field(line) for line in file.read_text("utf-8").splitlines() if ":" in line)
    return Manifest(
        folder=file.parent.name,
        name=fields["name"],
        version=fields.get("version", ""),
        description=fields.get("description", ""),
        requires_env=tuple(
            name.strip() for name in fields.get("requires_env", "").strip("[]").split(",") if name
        ),
        requires_login=fields.get("requires_login", ""),
        opt_in=fields.get("opt_in") == "true",
    )


def _field(line: str) -> tuple[str, str]:
    """Bundled manifests hold nothing but `key: value` lines and lists in brackets."""
    key, _, value = line.partition(":")
    return key.strip(), value.strip().strip("\"'")
