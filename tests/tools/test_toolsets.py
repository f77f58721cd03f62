from __future__ import annotations

import pytest

from hermes.core.errors import UsageError
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import RARE, SEARCHING, resolve_toolsets


def test_the_default_toolset_has_every_core_tool() -> None:
    # What models the user brings its tools when it is chosen; the mixture of agents is costly.
    chosen = {*resolve_toolsets(["honcho", "moa", "user_model"]), *SEARCHING, *RARE}
    assert resolve_toolsets(["hermes-cli"]) == tuple(sorted(set(declarations()) - chosen))
    assert resolve_toolsets(["all"]) == resolve_toolsets(["*"]) == tuple(sorted(declarations()))


def test_disabled_toolsets_are_taken_away() -> None:
    assert resolve_toolsets(["file", "todo"], ["todo"]) == (
        "patch",
        "read_file",
        "search_files",
        "write_file",
    )
    assert resolve_toolsets(["hermes-cli"], ["all"]) == ()


def test_an_unknown_toolset_brings_suggestions() -> None:
    with pytest.raises(UsageError, match="Did you mean terminal"):
        resolve_toolsets(["terminl"])
    with pytest.raises(UsageError, match="There are: clarify, code_execution, cronjob, delegation"):
        resolve_toolsets(["file"], ["xyzzy"])
