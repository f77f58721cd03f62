"""Lists, installs and removes local model files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from hermes.codec.values import Value
from hermes.config.home import Home, unwritable_error
from hermes.core.errors import ConfigError, NotFound
from hermes.providers.embedded.engines import MISSING
from hermes.providers.embedded.install import (
    INSTALLABLE,
    Progress,
    find_installable,
    install,
    installed_path,
)
from hermes.providers.embedded.model_file import (
    ModelFile,
    describe_model_file,
    find_model_file,
    format_parameters,
    format_size,
)

__all__ = ["ModelFile", "format_parameters", "format_size"]


class ModelRow(Value):
    """One row of the model list."""

    name: str
    path: str = ""  # empty for a model that is not installed
    size: int = 0
    parameters: int = 0
    window: int = 0
    reduced: bool = False
    licence: str = ""
    note: str = ""
    problem: str = ""  # why the file cannot be used


def runtime_hint() -> str:
    """Return what is missing to run local models, or ""."""
    return "" if find_spec("xllamacpp") is not None else MISSING


def model_rows(home: Home) -> list[ModelRow]:
    """Return installed models, then installable ones."""
    rows = [_row(path) for path in sorted(home.models.glob("*.gguf"))]
    names = {row.name for row in rows}
    more = [model for model in INSTALLABLE if model.name not in names]
    return rows + [
        ModelRow(name=model.name, size=model.size, licence=model.licence, note=model.note)
        for model in more
    ]


def inspect_model_file(home: Home, name: str) -> ModelFile:
    """Describe the model with this path or installed name."""
    return describe_model_file(find_model_file(name, home.models))


async def install_model(
    home: Home, name: str, *, env: Mapping[str, str], progress: Progress
) -> tuple[Path, bool]:
    """Return the file's path, and whether it was already installed."""
    model = find_installable(name)
    folder = home.ensure_folder(home.models)
    fetched = await install(model, folder, env=env, progress=progress)
    return installed_path(model, folder), not fetched


def remove_model(home: Home, name: str) -> Path:
    """Remove a model. Only files in the home's model folder are removed."""
    path = home.models / f"{name.removesuffix('.gguf')}.gguf"
    if path.parent != home.models or not path.is_file():
        known = tuple(sorted(found.stem for found in home.models.glob("*.gguf")))
        raise NotFound(
            f"No model named {name!r} is installed; `hermes model list embedded` shows them.",
            near=known,
        )
    try:
        path.unlink()
    except OSError as error:
        raise unwritable_error(path, error) from error
    return path


def _row(path: Path) -> ModelRow:
    size = path.stat().st_size
    try:
        known = describe_model_file(path)
    except ConfigError as error:
        return ModelRow(name=path.stem, path=str(path), size=size, problem=str(error))
    note = next((model.note for model in INSTALLABLE if model.name == path.stem), "")
    return ModelRow(
        name=path.stem,
        path=str(path),
        size=size,
        parameters=known.parameters,
        window=known.window,
        reduced=known.small,
        licence=known.licence,
        note=note,
    )
