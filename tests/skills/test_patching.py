"""Random changes by an agent and a person: the history brings every text back."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError, UsageError
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN, parse_skill
from tests.skills.bench import Bench, skill_text

WORDS = st.text(alphabet="abc \n-:#é", min_size=1, max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("patch"), WORDS, WORDS),
        st.tuples(st.just("person"), WORDS, WORDS),
        st.tuples(st.just("file"), WORDS, WORDS),
        st.tuples(st.just("remove"), WORDS, WORDS),
    ),
    max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_every_text_that_there_was_can_be_had_again(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        text = skill_text("deploy", body="abc abc\n- a: b\n")
        bench.manage("create", "deploy", content=text)
        seen = {bench.digest("deploy"): bench.tree("deploy")}
        for step in steps:
            _take(bench, step)
            seen[bench.digest("deploy")] = bench.tree("deploy")
            # Whatever was tried, what lies there is a skill.
            parse_skill(bench.tree("deploy")[MAIN].decode())
        bench.store.adopt("deploy", Cause(who="user"))
        by_hash = {one.hash: one for one in bench.store.history("deploy")}
        for digest, tree in seen.items():
            bench.store.revert("deploy", by_hash[digest].id, Cause(who="user"))
            assert bench.tree("deploy") == tree


def _take(bench: Bench, step: tuple[str, str, str]) -> None:
    kind, first, second = step
    main = bench.skills / "deploy" / MAIN
    try:
        match kind:
            case "patch":
                change = {"old_string": first, "new_string": second, "replace_all": True}
                bench.manage("patch", "deploy", **change)
            case "person":
                bench.store.adopt("deploy", Cause(who="user"))
                main.write_text(main.read_text() + first)
            case "file":
                file = {"file_path": "references/x.md", "file_content": first}
                bench.manage("write_file", "deploy", **file)
            case _:
                bench.manage("remove_file", "deploy", file_path="references/x.md")
    except (ToolError, UsageError):
        pass
    except Exception as error:
        assert type(error).__name__ == "NotFound", error
