"""Package READMEs: they name every module and no other file, and state true line budgets."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "hermes"
READMES = sorted(path for path in SOURCE.rglob("README.md") if "data" not in path.parts)
CODE = re.compile(r"`([^`\s]+)`")
BUDGET = re.compile(r"Line budget(, with data)?: ([\d,]+)")


def folder_of(readme: Path) -> str:
    return str(readme.parent.relative_to(SOURCE))


@pytest.mark.parametrize("readme", READMES, ids=folder_of)
def test_a_readme_names_every_module_of_its_folder(readme: Path) -> None:
    names = [Path(name.split(".")[0]).name for name in CODE.findall(readme.read_text("utf-8"))]
    modules = [path.stem for path in readme.parent.glob("*.py") if path.stem != "__init__"]
    missing = [each for each in modules if not any(fnmatch(each, name) for name in names)]
    assert not missing, f"say in {readme} what these modules contain: {', '.join(missing)}"


@pytest.mark.parametrize("readme", READMES, ids=folder_of)
def test_a_readme_names_no_module_that_does_not_exist(readme: Path) -> None:
    files = [name for name in CODE.findall(readme.read_text("utf-8")) if name.endswith(".py")]
    roots = (readme.parent, SOURCE, SOURCE.parent.parent)
    missing = [name for name in files if not any(list(root.glob(name)) for root in roots)]
    assert not missing, f"{readme} names files that do not exist: {', '.join(missing)}"


@pytest.mark.parametrize("readme", READMES, ids=folder_of)
def test_a_package_keeps_its_line_budget(readme: Path) -> None:
    stated = BUDGET.search(readme.read_text("utf-8"))
    if stated is None:
        return
    kinds = ("*.py", "*.txt", "*.toml", "*.json") if stated[1] else ("*.py",)
    files = [path for kind in kinds for path in readme.parent.rglob(kind)]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert lines <= int(stated[2].replace(",", "")), (
        f"{readme} states a line budget of {stated[2]}, and the package has {lines:,} lines: "
        "shorten the package, or raise its budget and say why in the commit"
    )
