"""What stands in the log files, and what does not."""

from __future__ import annotations

import logging
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.config.logs import (
    AGENT_LOG,
    ERRORS_LOG,
    LineFormatter,
    Redact,
    RepeatFilter,
    RotatingFile,
    session_tag,
    start_logging,
)

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ")
log = logging.getLogger("hermes.test")


@contextmanager
def logging_to(
    home: Home, *, redact: Redact | None = None, env: dict[str, str] | None = None, **given: object
) -> Iterator[None]:
    session = {key.replace("__", "."): value for key, value in given.items()}
    running = start_logging(load(home, env=env or {}, session=session), redact=redact)
    try:
        yield
    finally:
        running.close()


def lines(home: Home, name: str = AGENT_LOG) -> list[str]:
    text = (home.logs / name).read_text()
    return [LINE.sub("", line, count=1) for line in text.splitlines()]


def test_nothing_is_made_before_the_first_line(home: Home) -> None:
    with logging_to(home):
        assert not home.root.exists()
        log.debug("too fine")
        assert not home.root.exists()
        log.info("first")
        assert [path.name for path in home.logs.iterdir()] == [AGENT_LOG]
        assert stat.S_IMODE((home.logs / AGENT_LOG).stat().st_mode) == 0o600


def test_a_line_has_time_level_session_logger_message_and_facts(home: Home) -> None:
    with logging_to(home):
        log.info("tool ran", extra={"tool": "read_file", "seconds": 2})
        session_tag.set("20260225_143052_a1b2c3")
        log.info("hello %s", "you")
        log.info("other", extra={"session_id": "s2"})
        session_tag.set("")
    assert lines(home) == [
        "INFO [-] hermes.test: tool ran tool=read_file seconds=2",
        "INFO [20260225_143052_a1b2c3] hermes.test: hello you",
        "INFO [s2] hermes.test: other",
    ]


def test_warnings_are_written_to_both_files(home: Home) -> None:
    with logging_to(home, logging__level="ERROR"):
        log.info("fine")
        log.warning("odd")
        log.error("bad")
    assert lines(home) == ["ERROR [-] hermes.test: bad"]
    assert lines(home, ERRORS_LOG) == [
        "WARNING [-] hermes.test: odd",
        "ERROR [-] hermes.test: bad",
    ]


def test_a_traceback_is_indented_below_its_line(home: Home) -> None:
    with logging_to(home):
        try:
            raise ValueError("inner\nsecond")
        except ValueError:
            log.exception("it crashed")
    found = lines(home)
    assert found[0] == "ERROR [-] hermes.test: it crashed"
    assert found[-2:] == ["  ValueError: inner", "  second"]
    assert all(line.startswith("  ") for line in found[1:])


def test_untrusted_text_cannot_forge_a_line(home: Home) -> None:
    with logging_to(home):
        log.info("said %s", "x\n2026-01-01 00:00:00.000 INFO [-] root: forged\r\x1b[2J")
    assert len(lines(home)) == 1
    assert "x\\n2026-01-01" in lines(home)[0]
    assert lines(home)[0].endswith("forged\\r\\x1b[2J")


def test_arguments_that_do_not_fit_do_not_break_the_caller(home: Home) -> None:
    record = log.makeRecord("hermes.test", logging.WARNING, "", 0, "one %s %s", ("only",), None)
    assert RepeatFilter().filter(record)
    assert LineFormatter(str).format(record).endswith("WARNING [-] hermes.test: one %s %s")


def test_secrets_are_masked_in_messages_facts_and_tracebacks(home: Home) -> None:
    secret = "sk-or-0123456789abcdef"
    with logging_to(home, env={"A_KEY": secret, "B_KEY": "short"}):
        log.info("key %s", secret, extra={"key": secret})
        try:
            raise ValueError(f"refused {secret}")
        except ValueError:
            log.exception("short")
    text = (home.logs / AGENT_LOG).read_text() + (home.logs / ERRORS_LOG).read_text()
    assert secret not in text
    assert text.count("sk-or-...cdef") == 4
    assert "hermes.test: short" in text


def test_masking_can_be_replaced_but_not_switched_off(home: Home) -> None:
    env = {"A_KEY": "0123456789"}
    with logging_to(home, env=env, redact=lambda text: text.replace("123", "…")):
        log.info("key 0123456789")
    with logging_to(home, env=env, security__redact_secrets=False):
        log.info("key 0123456789")
    assert lines(home) == [
        "INFO [-] hermes.test: key 0…456789",
        "INFO [-] hermes.test: key ***",
    ]


def test_a_line_that_cannot_be_redacted_is_not_written(home: Home) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no")

    with logging_to(home, redact=broken):
        log.info("secret")
    assert not (home.logs / AGENT_LOG).exists()


def test_one_line_per_minute_and_fault(home: Home) -> None:
    once = RepeatFilter()

    def passes(text: str, at: float, level: int = logging.WARNING, **facts: object) -> int | None:
        record = log.makeRecord("hermes.test", level, "", 0, text, (), None, extra=facts)
        record.created = at
        return getattr(record, "repeated", 0) if once.filter(record) else None

    assert passes("down", 100) == 0
    assert passes("down", 101) is None
    assert passes("down", 159) is None
    assert passes("down", 130, tool="other") == 0
    assert passes("down", 130, level=logging.ERROR) == 0
    assert passes("down", 161) == 2
    assert passes("down", 162) is None
    assert passes("fine", 100, level=logging.INFO) == 0
    assert passes("fine", 100, level=logging.INFO) == 0
    for number in range(1000):
        assert passes(f"fault {number}", 200) == 0
    assert passes("down", 200) == 0


def test_repeats_are_counted_in_the_next_line(home: Home) -> None:
    with logging_to(home):
        record = log.makeRecord("hermes.test", logging.WARNING, "", 0, "down", (), None)
        for at in (100.0, 101.0, 102.0, 161.0):
            record.created = at
            logging.getLogger().handle(record)
    assert lines(home) == [
        "WARNING [-] hermes.test: down",
        "WARNING [-] hermes.test: down (and 2 more times since)",
    ]


@contextmanager
def rotating(home: Home, *, backups: int) -> Iterator[logging.Logger]:
    logger = logging.Logger("hermes.rotation")
    handler = RotatingFile(home, home.logs / "x.log", max_bytes=10, backups=backups)
    logger.addHandler(handler)
    yield logger
    handler.close()


def test_full_files_are_rotated_and_the_oldest_is_deleted(home: Home) -> None:
    with rotating(home, backups=2) as logger:
        for number in range(8):
            logger.info("line %d", number)
    found = {path.name: path.read_text() for path in home.logs.iterdir()}
    assert found == {"x.log": "line 7\n", "x.log.1": "line 6\n", "x.log.2": "line 5\n"}


def test_without_backups_a_full_file_is_truncated(home: Home) -> None:
    with rotating(home, backups=0) as logger:
        for number in range(3):
            logger.info("line %d", number)
    assert {path.name: path.read_text() for path in home.logs.iterdir()} == {"x.log": "line 2\n"}


def test_a_file_that_was_moved_away_is_reopened(home: Home) -> None:
    with rotating(home, backups=2) as logger:
        logger.info("one")
        (home.logs / "x.log").rename(home.logs / "moved")
        logger.info("two")
    assert (home.logs / "moved").read_text() == "one\n"
    assert (home.logs / "x.log").read_text() == "two\n"


def test_lines_that_cannot_be_written_are_reported_once_and_counted(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.ensure_folder(home.root)
    home.logs.write_text("in the way")
    with rotating(home, backups=1) as logger:
        logger.info("lost")
        logger.info("lost too")
        assert home.logs.read_text() == "in the way"
        home.logs.unlink()
        logger.info("written")
    name = home.logs / "x.log"
    assert capsys.readouterr().err == (
        f"hermes: cannot write the log {name} (File exists); log lines are dropped\n"
    )
    assert name.with_name("x.log.1").read_text() == "2 log lines were dropped: File exists\n"
    assert name.read_text() == "written\n"


def test_a_formatting_error_is_reported_without_the_line(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(text: str) -> str:
        raise ValueError(text)

    with logging_to(home, redact=broken):
        log.info("the secret of the day")
    assert capsys.readouterr().err == (
        f"hermes: cannot write the log {home.logs / 'agent.log'} (ValueError); "
        "log lines are dropped\n"
    )


def test_processes_that_write_and_rotate_at_once_lose_no_line(home: Home) -> None:
    code = (
        "import logging, sys\n"
        "from pathlib import Path\n"
        "from hermes.config.home import Home\n"
        "from hermes.config.logs import RotatingFile\n"
        f"home = Home(Path({str(home.root)!r}))\n"
        "logger = logging.Logger('x')\n"
        "logger.addHandler(RotatingFile(home, home.logs / 'x.log', max_bytes=2000, backups=99))\n"
        "for n in range(300): logger.info('%s-%d.', sys.argv[1], n)\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [run.wait(120) for run in runs] == [0, 0, 0]
    files = list(home.logs.iterdir())
    written = [line for path in files for line in path.read_text().splitlines()]
    assert sorted(written) == sorted(f"{name}-{n}." for name in "abc" for n in range(300))
    assert len(files) > 2


@pytest.mark.parametrize("name", ["markdown_it", "asyncio"])
def test_noisy_libraries_log_from_warning(home: Home, name: str) -> None:
    with logging_to(home):
        logging.getLogger(name).info("a request")
        logging.getLogger(name).warning("a problem")
    assert lines(home) == [f"WARNING [-] {name}: a problem"]
