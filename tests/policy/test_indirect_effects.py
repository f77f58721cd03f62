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


@pytest.mark.parametrize(
    "code",
    [
        """print((pathlib.Path.home() / ".docker" / "config.json").read_text())""",
        """p = Path.home() / ".kube"; print((p / "config").read_text())""",
        """print(Path("~").expanduser().joinpath(".docker", "config.json").read_bytes())""",
        """print(open(os.path.join(os.environ["HOME"], ".docker", "config.json")).read())""",
        """print(open("/".join([os.getenv("HOME"), ".docker", "config.json"])).read())""",
    ],
)
def test_python_that_joins_a_path_reads_that_path(code: str) -> None:
    imports = "import os, pathlib; from pathlib import Path"
    assert category(f"python3 -c '{imports}; {code}'") == "credentials"
    harmless = code.replace(".docker", "docs").replace(".kube", "docs")
    assert category(f"python3 -c '{imports}; {harmless}'") == "allowed"


def test_a_link_to_keys_is_like_a_copy_of_them() -> None:
    assert category("ln -s ~/.ssh ./assets/keys") == "credentials"
    assert category("ln -s ~ home") == "credentials"
    assert category("ln -st assets ~/.aws/credentials") == "credentials"
    assert category("ln -s /usr/share/dict words") == "allowed"


@pytest.mark.parametrize(
    "script",
    [
        """ruby -e "send(:sys.to_s + 'tem', 'id')" """,
        """ruby -e "method(('ev' + 'al')).call('1')" """,
        """php -r 'call_user_func("sys"."tem", "id");'""",
    ],
)
def test_a_function_whose_name_is_put_together_needs_approval(script: str) -> None:
    assert category(script) == "obfuscated"


@pytest.mark.parametrize(
    "script",
    [
        "yes | xargs -P 0 -I{} sh -c 'sleep 99'",
        "yes | xargs -I{} sh -c 'sleep 99 &'",
        """lua -e "while true do os.execute('sleep 9 &') end" """,
        """awk 'BEGIN { while (1) system("sleep 9 &") }'""",
    ],
)
def test_processes_without_end_are_never_started(script: str) -> None:
    decision = decide(script, rules())
    assert isinstance(decision, Deny)
    assert decision.hardline


@pytest.mark.parametrize(
    "script",
    [
        "read line < /dev/zero",
        "awk 1 /dev/urandom",
        "python3 -c \"open('/dev/zero').read()\"",
        "node -e \"require('fs').readFileSync('/dev/zero')\"",
        "while true; do echo x >> log; done",
    ],
)
def test_sources_that_never_end_are_asked_about(script: str) -> None:
    assert category(script) == "disk"
    assert category("while true; do date >> log; sleep 5; done") == "allowed"
    assert category("python3 -c \"print(open('/dev/urandom', 'rb').read(16))\"") == "allowed"


def test_awk_and_sed_read_the_files_that_they_name() -> None:
    read = """awk 'BEGIN { f = ENVIRON["HOME"] "/.docker/config.json"; getline x < f }'"""
    assert category(read) == "credentials"
    assert category(f"sed '1r {HOME}/.docker/config.json' a.txt") == "credentials"
    assert category("sed '1r header.txt' a.txt") == "allowed"


def test_git_works_only_in_repositories_of_the_workspace() -> None:
    assert category("git -C ~/other checkout main") == "overwrite"
    assert category("cd / && git apply x.patch") == "overwrite"
    assert category("git -C ~/other log") == "allowed"
    assert category("git -C vendor/lib checkout main") == "allowed"


def test_a_project_script_that_is_told_to_listen_everywhere_needs_approval() -> None:
    assert category("npm run dev -- --host 0.0.0.0") == "network_listen"
    assert category("npm run dev") == "allowed"


def test_a_converter_writes_its_last_operand() -> None:
    assert category("pdftotext a.pdf ~/.bashrc") == "persistence"
    assert category("lame a.wav /etc/cron.d/x") == "persistence"
    assert category("pdftotext a.pdf ~/new-file.txt") == "overwrite"
    assert category("pdftotext a.pdf out/a.txt") == "allowed"
    assert category("difft /etc/passwd /etc/hostname") == "allowed"
