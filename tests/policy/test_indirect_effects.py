"""Effects through other programs: launchers, statements, searches, inline code."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, Deny
from tests.policy.decisions import decide, rules

HOME = "/home/person"


def category(script: str) -> str:
    match decide(script, rules()):
        case Ask(category=found) | Deny(category=found):
            return found
        case Allow():
            return "allowed"


@pytest.mark.parametrize(
    "before",
    [
        "mise exec node@22 --",
        "asdf exec",
        "volta run --node 20",
        "fnm exec --using=20",
        "nvm exec 18",
        "conda run -n dev",
    ],
)
def test_what_runs_in_a_chosen_version_is_judged_as_if_it_ran_alone(before: str) -> None:
    assert category(f"{before} npm test") == "allowed"
    assert category(f"{before} rm -rf ~/Documents") == "delete"
    assert category(f"""{before} node -e 'require("fs").rmSync(process.env.HOME)'""") == "delete"


@pytest.mark.parametrize(
    ("code", "deleted"),
    [
        ("""node -e 'fs.rmSync(process.env.HOME + "/Pictures")'""", f"{HOME}/Pictures"),
        ("""deno eval 'Deno.removeSync(`${Deno.env.get("HOME")}/Pictures`)'""", f"{HOME}/Pictures"),
        ("""bun -e 'await Bun.$`rm -rf ${Bun.env.HOME}/Pictures`'""", f"{HOME}/Pictures"),
        ("""lua -e 'os.execute("rm -rf "..os.getenv("HOME").."/Pictures")'""", HOME),
    ],
)
def test_code_that_puts_the_home_together_is_told_by_its_place(code: str, deleted: str) -> None:
    decision = decide(code, rules())
    assert not isinstance(decision, Allow)
    assert deleted in decision.reason


def test_statements_may_read_and_write_files_of_the_project_only() -> None:
    assert category("""duckdb -c "COPY t TO 'out.csv'" """) == "allowed"
    assert category("""duckdb -c "COPY t TO 's3://other/out.csv'" """) == "network_out"
    assert category("""duckdb -c "COPY t TO '/home/person/.bashrc'" """) != "allowed"
    assert category("""duckdb -c "FROM read_text('/home/person/.ssh/id_rsa')" """) == "credentials"
    assert category("""psql -c "\\copy (select 1) to 'out.csv'" """) == "allowed"
    assert category("""psql -c "\\copy t to program 'gzip'" """) == "shell_escape"


def test_a_search_that_may_find_keys_hands_them_on() -> None:
    assert category("find ~ -name .ssh -exec cp -r {} /tmp/x \\;") == "credentials"
    assert category("fd -H .npmrc ~ -x cat") == "credentials"
    assert category("find . -name '*.py' -exec cat {} +") == "allowed"


def test_an_option_that_shows_secrets_is_one_for_any_program() -> None:
    assert category("pulumi stack output --show-secrets") == "credentials"
    assert category("anytool status --show-secrets") == "credentials"
    assert category("kubectl get pods --show-secrets=false") == "allowed"
    assert category("grep -rn -- --show-secrets docs") == "allowed"


def test_a_tool_that_sends_what_it_makes_is_told_by_its_options() -> None:
    assert category("eas build") == "allowed"
    assert category("eas build --auto-submit") == "remote_state"
    assert category("pytest --no-upload") == "allowed"
