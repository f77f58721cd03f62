"""Reads the plugin.yaml of bundled providers, without importing their code or a YAML library."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.values import Value

MANIFEST = "plugin.yaml"


class ImageProviderManifest(Value):
    """`requires_env` are variables that must be set, `requires_login` an account that must be
    logged in. An `opt_in` provider counts only where the settings name it, because it is unknown
    whether its server runs."""

    folder: str
    name: str
    version: str = ""
    description: str = ""
    requires_env: tuple[str, ...] = ()
    requires_login: str = ""
    opt_in: bool = False


def bundled_manifests(folder: Path) -> tuple[ImageProviderManifest, ...]:
    """Return those of all folders in this one, by name."""
    found = [_read_manifest(file) for file in folder.glob(f"*/{MANIFEST}")]
    return tuple(sorted(found, key=lambda each: each.name))


def _read_manifest(file: Path) -> ImageProviderManifest:
    fields = dict(_field(line) for line in file.read_text("utf-8").splitlines() if ":" in line)
    return ImageProviderManifest(
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
    """Bundled manifests contain only `key: value` lines and lists in brackets."""
    key, _, value = line.partition(":")
    return key.strip(), value.strip().strip("\"'")
