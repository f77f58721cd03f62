"""The real program as a gateway: messages are answered, signals stop and restart it, and nothing
is lost or doubled."""

from __future__ import annotations

import json
import signal

import pytest

from tests.surfaces.gateway.machine import Machine, ended, until


async def test_a_message_is_answered_before_and_after_a_restart(machine: Machine) -> None:
    wire = machine.wire
    first = await machine.gateway()
    await wire.say("hi", key="1")
    await wire.wait_for("You said: hi")
    state = await machine.state()
    assert (state["running"], state["pid"]) == (True, first.pid)
    assert state["platforms"]["wire"]["state"] == "connected"
    first.send_signal(signal.SIGTERM)
    assert await ended(first) == 0
    assert (await machine.state())["gateway_state"] == "stopped"
    # Comes again from the platform: it is known.
    await wire.say("hi", key="1")
    await wire.say("are you there?", key="2")
    second = await machine.gateway()
    await wire.wait_for("are you there?")
    second.send_signal(signal.SIGTERM)
    assert await ended(second) == 0
    assert list(wire.posts.values()) == ["You said: hi", "You said: are you there?"]
    assert len(machine.turns()) == 2


async def test_a_message_that_waits_for_its_answer_survives_a_kill(machine: Machine) -> None:
    first = await machine.gateway()
    machine.answers.clear()
    await machine.wire.say("slow", key="1")
    await machine.asked()
    first.kill()
    await first.wait()
    machine.answers.set()
    assert not (await machine.state())["running"]
    _, out, _ = await machine.run("doctor")
    assert "the gateway crashed" in out
    second = await machine.gateway()
    await machine.wire.wait_for("You said: slow")
    second.send_signal(signal.SIGTERM)
    assert await ended(second) == 0
    assert list(machine.wire.posts.values()) == ["You said: slow"]


async def test_a_gateway_that_crashes_again_and_again_says_so_in_the_chats(
    machine: Machine,
) -> None:
    machine.answers.clear()
    await machine.wire.say("deadly", key="1")
    for _ in range(3):
        process = await machine.gateway()
        await machine.wire.acknowledge("1")
        process.kill()
        await process.wait()
    careful = await machine.gateway()
    await machine.wire.wait_for("I crashed several times in a row")
    machine.answers.set()
    await machine.wire.say("harmless", key="2")
    await machine.wire.wait_for("You said: harmless")
    careful.send_signal(signal.SIGTERM)
    assert await ended(careful) == 0
    last = await machine.gateway()
    await machine.wire.wait_for("You said: deadly")
    last.send_signal(signal.SIGTERM)
    assert await ended(last) == 0
    assert len(machine.wire.posts) == 3


async def test_a_second_signal_ends_the_process_at_once(machine: Machine) -> None:
    machine.add("gateway: {restart_drain_timeout: 600}")
    process = await machine.gateway()
    machine.answers.clear()
    await machine.wire.say("slow", key="1")
    await machine.asked()
    process.send_signal(signal.SIGTERM)
    await until(machine.is_draining)
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 1


async def test_a_restart_without_a_service_replaces_the_process(machine: Machine) -> None:
    process = await machine.gateway()
    await machine.wire.say("hi", key="1")
    await machine.wire.wait_for("You said: hi")
    process.send_signal(signal.SIGUSR1)
    await machine.wire.wait_for_login(count=2)
    await machine.wire.say("again", key="2")
    await machine.wire.wait_for("You said: again")
    assert (await machine.state())["pid"] == process.pid
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_a_restart_under_a_service_is_left_to_the_service(machine: Machine) -> None:
    process = await machine.gateway(HERMES_GATEWAY_SERVICE="1")
    process.send_signal(signal.SIGUSR1)
    assert await ended(process) == 75
    assert (await machine.state())["exit_reason"] == "restart"


async def test_without_a_platform_and_jobs_it_says_what_to_do(machine: Machine) -> None:
    code, out, errors = await machine.run("gateway", "run", WIRE_TOKEN="")
    assert (code, out) == (78, "")
    assert errors.count("\n") == 1
    assert "hermes gateway setup" in errors


async def test_a_wrong_token_is_fatal_when_nothing_else_is_there(machine: Machine) -> None:
    code, _, errors = await machine.run("gateway", "run", WIRE_TOKEN="another-token")
    assert code == 78
    assert "The token is wrong" in errors
    state = await machine.state()
    assert state["gateway_state"] == "startup_failed"
    code, out, _ = await machine.run("doctor", WIRE_TOKEN="another-token")
    assert code == 1
    assert "Wire: The token is wrong" in out


async def test_a_platform_that_is_away_is_waited_for(machine: Machine) -> None:
    process = await machine.gateway(WIRE2_TOKEN="x" * 20, WIRE2_PORT="9")
    state = (await machine.state())["platforms"]
    assert (state["wire"]["state"], state["wire2"]["state"]) == ("connected", "retrying")
    await machine.wire.say("hi", key="1")
    await machine.wire.wait_for("You said: hi")
    process.send_signal(signal.SIGINT)
    assert await ended(process) == 0


async def test_a_lost_connection_is_renewed_and_loses_no_message(machine: Machine) -> None:
    process = await machine.gateway()
    await machine.wire.hang_up()
    await machine.wire.say("hi", key="1")
    await machine.wire.wait_for("You said: hi")
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_one_gateway_runs_per_home(machine: Machine) -> None:
    first = await machine.gateway()
    code, _, errors = await machine.run("gateway", "run")
    assert code == 1
    assert str(first.pid) in errors
    second = await machine.gateway("--replace")
    assert await ended(first) == 0
    second.send_signal(signal.SIGTERM)
    assert await ended(second) == 0


async def test_two_homes_do_not_share_a_token(machine: Machine) -> None:
    first = await machine.gateway()
    other = machine.home.parent / "other"
    other.mkdir(mode=0o700)
    code, _, errors = await machine.run("gateway", "run", HERMES_HOME=str(other))
    assert code == 78
    assert "listens with the same token" in errors
    first.send_signal(signal.SIGTERM)
    assert await ended(first) == 0


async def test_stacks_can_be_read_from_outside(machine: Machine) -> None:
    process = await machine.gateway()
    process.send_signal(signal.SIGUSR2)
    file = machine.home / "logs" / "gateway_faulthandler.log"

    async def has_stacks() -> bool:
        return "process.py" in file.read_text()

    await until(has_stacks)
    assert process.returncode is None
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_a_stranger_is_paired_and_greeted(machine: Machine) -> None:
    process = await machine.gateway(WIRE_ALLOWED_USERS="")
    await machine.wire.say("let me in", key="1", user="8", chat="c8")
    text = machine.wire.posts[await machine.wire.wait_for("pairing approve")]
    words = text.split("`")[1].split()
    assert machine.turns() == []
    code, out, errors = await machine.run(*words[1:])
    assert (code, errors) == (0, "")
    assert "may write on wire" in out
    await machine.wire.wait_for("You are paired now")
    await machine.wire.say("hello", key="2", user="8", chat="c8")
    await machine.wire.wait_for("You said: hello")
    code, _, _ = await machine.run("pairing", "revoke", "wire", "8")
    assert code == 0
    await machine.wire.say("still me", key="3", user="8", chat="c8")
    await machine.wire.acknowledge("3")
    assert not any("still me" in post for post in machine.wire.posts.values())
    assert len(machine.turns()) == 1
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_revoking_stops_the_running_turn(machine: Machine) -> None:
    process = await machine.gateway(WIRE_ALLOWED_USERS="")
    await machine.wire.say("let me in", key="1", user="8", chat="c8")
    text = machine.wire.posts[await machine.wire.wait_for("pairing approve")]
    await machine.run(*text.split("`")[1].split()[1:])
    machine.answers.clear()
    await machine.wire.say("slow", key="2", user="8", chat="c8")
    await machine.asked()
    await machine.run("pairing", "revoke", "wire", "8")

    async def is_interrupted() -> bool:
        _, out, _ = await machine.run("sessions", "list", "--json")
        _, out, _ = await machine.run("trace", json.loads(out)[0]["id"], "--json")
        return "interrupted" in out

    await until(is_interrupted)
    machine.answers.set()
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0
    assert not any("You said: slow" in post for post in machine.wire.posts.values())


async def test_a_message_is_sent_without_a_gateway(machine: Machine) -> None:
    code, out, errors = await machine.run("send", "-t", "wire:c9:t1", "-s", "News", "Hello there.")
    assert (code, errors) == (0, "")
    assert out == "Sent to wire:c9:t1.\n"
    assert list(machine.wire.posts.values()) == ["**News**\n\nHello there."]
    assert machine.wire.addresses[0]["thread_id"] == "t1"
    code, out, _ = await machine.run("send", "hi", "--json", "-t", "wire", WIRE_HOME_CHANNEL="c1")
    assert code == 0
    assert '"state":"confirmed"' in out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("hi",), 2, "Name a target"),
        (("-t", "nosuch", "hi"), 2, "not configured"),
        (("-t", "wire", "hi"), 2, "no home channel"),
        (("-t", "wire:#team", "hi"), 1, "No chat of wire"),
        (("-t", "wire:1"), 2, "nothing to send"),
    ],
)
async def test_what_cannot_be_sent_is_told(
    machine: Machine, words: tuple[str, ...], code: int, told: str
) -> None:
    found, out, errors = await machine.run("send", *words)
    assert (found, out) == (code, "")
    assert told in errors


async def test_a_message_to_a_platform_that_is_away_waits_for_the_gateway(machine: Machine) -> None:
    port = machine.wire.port
    code, out, _ = await machine.run("send", "-t", "wire:c9", "Later.", WIRE_PORT="9")
    assert code == 1
    assert "the next run of the gateway sends it" in out
    _, out, _ = await machine.run("status")
    assert "1 unsent posts" in out
    process = await machine.gateway(WIRE_PORT=str(port))
    await machine.wire.wait_for("Later.")
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_names_of_chats_are_learned_from_their_messages(machine: Machine) -> None:
    process = await machine.gateway()
    await machine.wire.say("hi", key="1", chat="c5")
    await machine.wire.wait_for("You said: hi")
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0
    code, _, errors = await machine.run("send", "-t", "wire:@Ann", "Hello Ann.")
    assert (code, errors) == (0, "")
    assert machine.wire.addresses[-1]["chat_id"] == "c5"
    _, out, _ = await machine.run("send", "-l")
    assert "wire:c5" in out


async def test_a_command_inside_the_gateway_does_not_stop_it(machine: Machine) -> None:
    process = await machine.gateway()
    for command in ("stop", "restart"):
        code, _, errors = await machine.run("gateway", command, HERMES_IN_GATEWAY="1")
        assert code == 2
        assert "the gateway that it runs in" in errors
    code, out, _ = await machine.run("gateway", "stop")
    assert (code, out) == (0, "The gateway is stopped.\n")
    assert await ended(process) == 0
    code, _, errors = await machine.run("gateway", "stop")
    assert code == 1
    assert "not running" in errors


async def test_platforms_can_be_tested_one_by_one(machine: Machine) -> None:
    code, out, _ = await machine.run("gateway", "test")
    assert (code, out) == (0, "✓ wire           connected as @wire\n")
    code, out, _ = await machine.run("gateway", "test", "--json", WIRE_TOKEN="wrong-token")
    assert code == 1
    assert '"ok":false' in out
    code, out, _ = await machine.run("gateway", "test", "nosuch")
    assert code == 1
    assert "There is no platform 'nosuch'" in out


async def test_the_output_of_a_job_reaches_a_chat(machine: Machine) -> None:
    process = await machine.gateway()
    words = ("cron", "create", "every 1h", "report", "--deliver", "wire:c3", "--json")
    code, out, errors = await machine.run(*words)
    assert (code, errors) == (0, "")
    code, _, errors = await machine.run("cron", "run", json.loads(out)["id"])
    assert (code, errors) == (0, "")
    await machine.wire.wait_for("You said: report")
    assert machine.wire.addresses[-1]["chat_id"] == "c3"
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0


async def test_with_jobs_alone_the_gateway_runs_them(machine: Machine) -> None:
    code, _, _ = await machine.run("cron", "create", "every 1h", "report")
    assert code == 0
    _, out, _ = await machine.run("doctor", WIRE_TOKEN="")
    assert "1 scheduled jobs are enabled, but no scheduler runs" in out
    process = await machine.gateway(WIRE_TOKEN="")
    assert (await machine.state())["scheduler_age_seconds"] is not None
    _, out, _ = await machine.run("doctor", WIRE_TOKEN="")
    assert "no scheduler runs" not in out
    process.send_signal(signal.SIGTERM)
    _, errors_after = await process.communicate()
    assert process.returncode == 0
    assert b"only scheduled jobs run" in errors_after


async def test_the_owner_controls_the_process_in_a_chat(machine: Machine) -> None:
    process = await machine.gateway()
    wire = machine.wire
    await wire.say("/platform list", key="1")
    await wire.wait_for("wire: connected as @wire")
    await wire.say("/sethome", key="2")
    await wire.wait_for("This chat is the home channel of wire now.")
    assert "chat_id: c1" in (machine.home / "config.yaml").read_text()
    await wire.say("/restart", key="3")
    await wire.wait_for("I am back online.")
    assert (await machine.state())["pid"] == process.pid
    code, _, errors = await machine.run("send", "Hello home.")
    assert (code, errors) == (0, "")
    assert wire.addresses[-1]["chat_id"] == "c1"
    process.send_signal(signal.SIGTERM)
    assert await ended(process) == 0
    assert wire.logins.count("run") == 2
