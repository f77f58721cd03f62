"""What the arguments of `AIAgent` do: to requests, to the session and to files."""

from __future__ import annotations

import base64
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.core.errors import UsageError
from hermes.testing.faults import hangs
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, fails, says
from tests.surfaces.python.programs import GatedSteps, Programs

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
DATA_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def body(programs: Programs, n: int = -1) -> Any:
    return programs.server.requests[n].body


def test_the_first_arguments_work_by_position(programs: Programs) -> None:
    programs.server.add(says("hello"))
    agent = AIAgent(
        "test", "k", f"{programs.server.url}/v1", 5, ["file"], None, False, True, None,
        home=programs.folder / "home", cwd=programs.folder,
    )  # fmt: skip
    with agent:
        assert agent.chat("hi") == "hello"
    names = {tool["function"]["name"] for tool in body(programs)["tools"]}
    assert "read_file" in names
    assert "terminal" not in names


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        ("chat_completions", "/v1/chat/completions"),
        ("codex_responses", "/v1/responses"),
        ("anthropic_messages", "/v1/messages"),
    ],
)
def test_the_api_mode_is_honoured(programs: Programs, mode: str, path: str) -> None:
    assert programs.agent(says("hello"), api_mode=mode).chat("hi") == "hello"
    assert programs.server.requests[-1].path == path


def test_an_unknown_api_mode_is_refused(programs: Programs) -> None:
    with pytest.raises(Exception, match="api_mode"):
        programs.agent(api_mode="telepathy").chat("hi")


def test_request_overrides_are_in_every_request(programs: Programs) -> None:
    agent = programs.agent(
        calls("todo", todos=[]), says("done"), request_overrides={"seed": 7, "temperature": 0.5}
    )
    agent.chat("hi")
    assert [(r.body["seed"], r.body["temperature"]) for r in programs.server.requests] == [
        *((7, 0.5), (7, 0.5)),
    ]


def test_a_list_of_text_and_images_is_one_message(programs: Programs) -> None:
    (programs.folder / "dot.png").write_bytes(PNG)
    agent = programs.agent(says("A dot."), says("Still a dot."))
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image_url", "image_url": {"url": str(programs.folder / "dot.png")}},
    ]
    result = agent.run_conversation(content)
    sent = body(programs)["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["text", "image_url", "image_url"]
    assert sent[1]["image_url"]["url"] == DATA_URL
    first = result["messages"][0]
    assert first["content"] == [content[0], content[1], content[1]]
    again = programs.agent()
    again.run_conversation("and now?", conversation_history=result["messages"])
    assert body(programs)["messages"][1]["content"][1] == content[1]


def test_other_parts_of_a_message_are_refused(programs: Programs) -> None:
    with pytest.raises(UsageError, match="'video'"):
        programs.agent().chat([{"type": "video", "video": "x"}])


def test_an_own_session_id_makes_a_session_and_takes_it_up_again(programs: Programs) -> None:
    agent = programs.agent(says("one"), says("two"), session_id="job-42")
    assert agent.run_conversation("hi")["session_id"] == "job-42"
    agent.close()
    again = programs.agent(session_id="job-42")
    assert len(again.run_conversation("more")["messages"]) == 4


def test_an_own_session_id_is_no_prefix_of_another(programs: Programs) -> None:
    agent = programs.agent(says("one"), says("two"), session_id="job-42")
    agent.chat("hi")
    agent.close()
    assert programs.agent(session_id="job").run_conversation("hi")["session_id"] == "job"


def test_a_session_id_that_is_no_name_is_refused(programs: Programs) -> None:
    with pytest.raises(UsageError, match="session id"):
        programs.agent(session_id="../../x").chat("hi")


def test_a_database_elsewhere_holds_the_sessions(programs: Programs) -> None:
    file = programs.folder / "elsewhere.db"
    agent = programs.agent(says("one"), session_db=file)
    agent.chat("hi")
    assert file.exists()
    assert not (programs.folder / "home" / "hermes.db").exists()


def test_prefilled_messages_come_first_and_are_not_stored(programs: Programs) -> None:
    prefill = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    agent = programs.agent(says("6"), prefill_messages=prefill)
    result = agent.run_conversation("3+3?")
    assert [m["content"] for m in body(programs)["messages"][1:]] == ["2+2?", "4", "3+3?"]
    assert [m["content"] for m in result["messages"]] == ["3+3?", "6"]


def test_the_stored_message_can_differ_from_the_sent_one(programs: Programs) -> None:
    agent = programs.agent(says("noon"), says("yes"))
    result = agent.run_conversation(
        "[12:00] what time is it?",
        persist_user_message="what time is it?",
        persist_user_timestamp=1_700_000_000.0,
    )
    assert result["messages"][0] == {
        "role": "user",
        "content": "what time is it?",
        "timestamp": 1_700_000_000.0,
    }
    agent.chat("sure?")
    assert body(programs)["messages"][1]["content"] == "[12:00] what time is it?"


def test_the_same_task_id_may_be_used_for_every_turn(programs: Programs) -> None:
    agent = programs.agent(says("one"), says("two"))
    for answer in ("one", "two"):
        assert agent.run_conversation("go", task_id="t")["final_response"] == answer


def test_context_files_are_skipped_but_the_soul_may_stay(programs: Programs) -> None:
    programs.write_home("SOUL.md", "You are Marvin.")
    (programs.folder / "AGENTS.md").write_text("Use tabs.")
    for options, expected in (
        ({}, (True, True)),
        ({"skip_context_files": True}, (False, False)),
        ({"skip_context_files": True, "load_soul_identity": True}, (False, True)),
    ):
        programs.agent(says("ok"), **options).chat("hi")
        system = body(programs)["messages"][0]["content"]
        assert ("Use tabs." in system, "You are Marvin." in system) == expected


def test_the_model_knows_who_talks_where(programs: Programs) -> None:
    agent = programs.agent(says("ok"), user_name="Ada", chat_name="Engines", chat_type="group")
    agent.chat("hi")
    system = body(programs)["messages"][0]["content"]
    assert "This conversation: user Ada, chat Engines, kind of chat group." in system


def test_a_second_key_answers_when_the_first_is_refused(programs: Programs) -> None:
    agent = programs.agent(
        fails(401), says("hello"), api_key=None, credential_pool=["k1-key", "k2-key"]
    )
    assert agent.chat("hi") == "hello"
    keys = [request.headers["authorization"] for request in programs.server.requests]
    assert keys == ["Bearer k1-key", "Bearer k2-key"]


def test_calls_can_be_paced(programs: Programs) -> None:
    agent = programs.agent(
        calls("todo", todos=[]), calls("todo", todos=[]), says("done"), tool_delay=0.3
    )
    before = time.monotonic()
    agent.chat("hi")
    assert time.monotonic() - before >= 0.3


@pytest.mark.parametrize(("mode", "count"), [("off", 0), ("new", 1), ("all", 2)])
def test_the_progress_mode_limits_the_feed(programs: Programs, mode: str, count: int) -> None:
    seen: list[str] = []
    agent = programs.agent(
        calls("todo", todos=[]),
        calls("todo", todos=[]),
        says("done"),
        tool_progress_mode=mode,
        tool_progress_callback=lambda kind, *_a, **_k: seen.append(kind),
    )
    agent.chat("hi")
    assert seen.count("tool.started") == count


def test_calls_are_logged_with_the_prefix(
    programs: Programs, caplog: pytest.LogCaptureFixture
) -> None:
    agent = programs.agent(
        calls("read_file", path="a" * 50), says("ok"), log_prefix="[7] ", log_prefix_chars=5
    )
    with caplog.at_level(logging.INFO, logger="hermes"):
        agent.chat("read")
    assert "[7] read_file aaaaa" in caplog.messages


def test_trajectories_are_saved_by_outcome(programs: Programs) -> None:
    folder = programs.folder / "home" / "trajectories"
    agent = programs.agent(
        calls("read_file", path="a.txt"), says("It says hello."), save_trajectories=True
    )
    (programs.folder / "a.txt").write_text("hello\n")
    agent.chat("what is in a.txt?")
    programs.agent(fails(401), save_trajectories=True).chat("hi")
    done = json.loads((folder / "trajectory_samples.jsonl").read_text())
    failed = json.loads((folder / "failed_trajectories.jsonl").read_text())
    assert [turn["from"] for turn in done["conversations"]] == [
        *("system", "human", "gpt", "tool", "gpt"),
    ]
    assert done["conversations"][1]["value"] == "what is in a.txt?"
    assert done["conversations"][2]["value"].startswith("<think>\n</think>\n<tool_call>\n")
    assert '"arguments":{"path":"a.txt"}' in done["conversations"][2]["value"]
    assert done["conversations"][3]["value"].startswith("<tool_response>\n")
    assert "<tools>" in done["conversations"][0]["value"]
    assert (done["completed"], failed["completed"]) == (True, False)


def test_a_trajectory_that_cannot_be_written_is_a_clean_up_error(
    programs: Programs, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    agent = programs.agent(says("ok"), save_trajectories=tmp_path / "file" / "folder")
    result = agent.run_conversation("hi")
    assert result["final_response"] == "ok"
    assert "cannot be written" in result["cleanup_errors"][0]


def test_three_threads_get_their_own_answers(programs: Programs) -> None:
    agent = programs.agent(*(says(f"answer {n}") for n in range(3)))
    results: dict[str, dict[str, Any]] = {}

    def ask(question: str) -> None:
        results[question] = agent.run_conversation(question)

    threads = [threading.Thread(target=ask, args=(f"question {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({result["session_id"] for result in results.values()}) == 1
    for question, result in results.items():
        place = [m["content"] for m in result["messages"]].index(question)
        assert result["messages"][place + 1]["content"] == result["final_response"]
    assert len({result["final_response"] for result in results.values()}) == 3


def test_a_callback_cannot_wait_for_its_own_agent(programs: Programs) -> None:
    errors: list[str] = []

    def nested(*_: object, **__: object) -> str:
        try:
            agent.chat("again")
        except UsageError as error:
            errors.append(str(error))
        return "yes"

    agent = programs.agent(
        calls("clarify", question="Tea?"), says("ok"), clarify_callback=nested, step_callback=nested
    )
    assert agent.chat("hi") == "ok"
    assert len(errors) == 3
    assert "callback" in errors[0]


def test_a_late_steer_is_returned_and_an_early_one_delivered(tmp_path: Path) -> None:
    steps = GatedSteps(calls("todo", todos=[]), says("done"))
    with ScriptedServer.in_thread(steps) as server:
        programs = Programs(tmp_path, server)
        agent = programs.agent()
        with programs.running(agent, "go") as results:
            server.received.wait(1, timeout=60)
            assert agent.steer("be brief")
            steps.open(0)
            server.received.wait(2, timeout=60)
            assert agent.steer("too late")
            steps.open(1)
        programs.close()
        assert "be brief" in str(body(programs)["messages"])
        assert results[0]["final_response"] == "done"
        assert results[0]["pending_steer"] == "too late"
        assert len(server.requests) == 2


def test_a_steer_between_turns_waits_for_the_next_one(programs: Programs) -> None:
    agent = programs.agent(says("hello"), calls("todo", todos=[]), says("done"))
    assert not agent.steer("  ")
    agent.chat("hi")
    assert agent.steer("be brief")
    assert agent.run_conversation("go")["pending_steer"] is None
    assert "be brief" in str(body(programs)["messages"])


def test_another_model_is_a_dictionary_or_two_names(programs: Programs) -> None:
    agent = programs.agent(says("a"), says("b"), says("c"))
    agent.chat("hi")
    agent.switch_model({"model": "other", "provider": "custom"})
    assert agent.run_conversation("who?")["model"] == "other"
    agent.switch_model("third", "custom")
    assert agent.run_conversation("who?")["model"] == "third"


def test_a_finished_process_starts_a_turn_of_its_own(programs: Programs) -> None:
    said: list[str] = []
    agent = programs.agent(
        calls("terminal", command="echo bye", background=True, notify_on_complete=True),
        says("started"),
        says("It has ended."),
        says("Nothing more."),
        stream_delta_callback=lambda text: said.append(text or "|"),
    )
    assert agent.chat("start it") == "started"
    programs.server.received.wait(3, timeout=60)
    result = agent.run_conversation("and?")
    texts = [str(m["content"]) for m in result["messages"]]
    assert any("proc_" in text and "bye" in text for text in texts[3:])
    assert "started|It has ended.|Nothing more.|" in "".join(said)


PROGRAM = """
import sys
from hermes import AIAgent
with AIAgent(model="test", base_url=sys.argv[1], api_key="k", home=sys.argv[2]) as agent:
    try:
        agent.chat("wait")
    except KeyboardInterrupt:
        print(agent.chat("hello?"))
"""


def test_a_program_that_stops_waiting_stops_the_turn(programs: Programs) -> None:
    programs.server.add(hangs(), says("back"))
    home = str(programs.folder / "home")
    command = [sys.executable, "-c", PROGRAM, f"{programs.server.url}/v1", home]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=programs.folder)
    programs.server.received.wait(1, timeout=60)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "back\n"
