from __future__ import annotations

from pathlib import Path

from hermes.workspaces.background import ProcessLog


def test_new_text_is_given_once_and_characters_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    log = ProcessLog(path)
    assert log.text_from(0, final=False) == ("", 0)
    path.write_bytes("aä".encode()[:2])
    assert log.text_from(0, final=False) == ("a", 1)
    path.write_bytes("aä".encode())
    assert log.text_from(1, final=False) == ("ä", 3)
    path.write_bytes(b"a\xc3")
    assert log.text_from(1, final=True) == ("�", 2)


def test_a_trimmed_log_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    log = ProcessLog(path, kept_bytes=100, trim_at_bytes=1_000)
    with path.open("ab", buffering=0) as process:
        lines = [f"line {n:04}\n" for n in range(300)]
        for line in lines:
            process.write(line.encode())
            log.trim()
    assert path.stat().st_size < 1_000
    assert log.end == 3_000
    kept = log.lines()
    assert [f"{line}\n" for line in kept] == lines[-len(kept) :]
    assert len(kept) == 10
    again = ProcessLog(path, trimmed_bytes=log.trimmed_bytes, kept_bytes=100)
    assert again.lines() == kept
    assert again.text_from(2_980, final=False) == ("line 0298\nline 0299\n", 3_000)


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "none")
    assert (log.lines(), log.tail(10), log.end, log.trim()) == ([], "", 0, False)
