"""Sessions in an editor, driven by the protocol's own client against the real program."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from acp import RequestError
from acp.schema import (
    AgentPlanUpdate,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    FileEditToolCallContent,
    McpServerStdio,
    ToolCallProgress,
    UserMessageChunk,
)

from hermes.testing.faults import hangs
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.mcp.conftest import LITTLE
from tests.surfaces.acp.editor import Editor, editor

WITH_TERMINALS = "acp: {use_client_terminal: true}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("first\n")
    return folder


async def opened(client: Editor, project: Path) -> str:
    return (await client.agent.new_session(str(project), mcp_servers=[])).session_id


async def test_an_answer_streams_and_commands_are_offered(tmp_path: Path, project: Path) -> None:
    async with (
        ScriptedServer([says("Hello from the model, in several pieces.")]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        assert client.hello.agent_info is not None
        assert client.hello.agent_info.name == "hermes-agent"
        session = await opened(client, project)
        done = await client.say(session, "hi")
        assert done.stop_reason == "end_turn"
        assert done.usage is not None and done.usage.output_tokens > 0
        assert client.text == "Hello from the model, in several pieces."
        await client.until(
            lambda: any(isinstance(each, AvailableCommandsUpdate) for each in client.updates)
        )
        (update,) = (e for e in client.updates if isinstance(e, AvailableCommandsUpdate))
        names = {command.name for command in update.available_commands}
        assert "model" in names
        # Editors hold their sessions themselves.
        assert not names & {"branch", "clear", "new", "resume"}


async def test_skills_and_quick_commands_work_and_are_advertised(
    tmp_path: Path, project: Path
) -> None:
    settings = (
        "quick_commands:\n"
        "  hello: {type: exec, command: echo hello from the shell}\n"
        "  who: {type: alias, target: usage}\n"
    )
    home = tmp_path / "home"
    skill = home / "skills" / "rhyme" / "SKILL.md"
    async with ScriptedServer([says("A rhyme."), says("Just a message.")]) as server:
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: rhyme\ndescription: Make rhymes.\n---\nAlways rhyme.\n")
        async with editor(home, server.url, settings=settings) as client:
            session = await opened(client, project)
            await client.until(
                lambda: any(isinstance(each, AvailableCommandsUpdate) for each in client.updates)
            )
            (update,) = (e for e in client.updates if isinstance(e, AvailableCommandsUpdate))
            described = {each.name: each.description for each in update.available_commands}
            assert described["rhyme"] == "Make rhymes."
            assert described["hello"] == "echo hello from the shell"
            await client.say(session, "/hello")
            assert "hello from the shell" in client.text
            await client.say(session, "/rhyme about cats")
            assert client.text.endswith("A rhyme.")
            asked = server.requests[-1].last_text
            assert "Always rhyme." in asked and "about cats" in asked
            await client.say(session, "/etc is a folder")
            assert client.text.endswith("Just a message.")
            assert server.requests[-1].last_text == "/etc is a folder"


@pytest.mark.parametrize(
    ("answer", "written"), [("allow_once", True), ("deny", False), ("nonsense", False)]
)
async def test_an_edit_is_asked_about_with_its_diff(
    tmp_path: Path, project: Path, answer: str, written: bool
) -> None:
    steps = [calls("write_file", path="notes.txt", content="second\n"), says("Done.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        client.answers = [answer]
        session = await opened(client, project)
        await client.say(session, "change it")
        [(about, options)] = client.asked
        assert options == ["allow_once", "allow_session", "allow_folder", "deny"]
        assert about.content is not None
        [diff] = about.content
        assert isinstance(diff, FileEditToolCallContent)
        assert (diff.old_text, diff.new_text) == ("first\n", "second\n")
        assert Path(diff.path) == project / "notes.txt"
        assert client.endings == ["completed" if written else "failed"]
    assert (project / "notes.txt").read_text() == ("second\n" if written else "first\n")


async def test_writing_can_be_allowed_in_a_folder(tmp_path: Path, project: Path) -> None:
    steps = [
        calls("write_file", path="docs/a.md", content="a"),
        calls("write_file", path="docs/deep/b.md", content="b"),
        calls("write_file", path="c.md", content="c"),
        says("Done."),
    ]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        client.answers = ["allow_folder", "deny"]
        session = await opened(client, project)
        await client.say(session, "write them")
        # The folder covers its subfolders, and nothing else.
        assert client.endings == ["completed", "completed", "failed"]
        first, second = (about.title or "" for about, _ in client.asked)
        assert "docs/a.md" in first and "c.md" in second
    assert (project / "docs/deep/b.md").read_text() == "b"


async def test_a_question_that_the_editor_never_answers_counts_as_no(
    tmp_path: Path, project: Path
) -> None:
    steps = [calls("write_file", path="notes.txt", content="x"), says("Then not.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url, settings="approvals: {timeout: 1}\n") as client,
    ):
        client.silent = True
        await client.say(await opened(client, project), "change it")
        assert client.text == "Then not." and client.endings == ["failed"]
    assert (project / "notes.txt").read_text() == "first\n"


async def test_modes_accept_edits_or_only_plan(tmp_path: Path, project: Path) -> None:
    steps = [
        calls("write_file", path="a.txt", content="a"),
        says("One."),
        calls("write_file", path="b.txt", content="b"),
        says("Two."),
    ]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        await client.agent.set_session_mode(session, "accept_edits")
        await client.say(session, "a")
        await client.agent.set_session_mode(session, "plan")
        await client.say(session, "b")
        assert client.asked == [] and client.endings == ["completed", "failed"]
        with pytest.raises(RequestError):
            await client.agent.set_session_mode(session, "reckless")
    assert (project / "a.txt").exists() and not (project / "b.txt").exists()


async def test_a_cancelled_answer_is_what_the_next_prompt_follows(
    tmp_path: Path, project: Path
) -> None:
    counting = hangs(says("one two three four"), after_chunks=2)
    async with (
        ScriptedServer([counting, says("five")]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        prompt = asyncio.ensure_future(client.say(session, "count"))
        await client.until(lambda: client.text)
        await client.agent.cancel(session)
        async with asyncio.timeout(60):
            assert (await prompt).stop_reason == "cancelled"
        seen = client.text
        await client.say(session, "more")
        told = [each["content"] for each in server.requests[-1].body["messages"][-2:]]
        assert seen and told == [seen, "more"]


async def test_cancelling_ends_a_running_command(tmp_path: Path, project: Path) -> None:
    async with (
        ScriptedServer([calls("terminal", command="sleep 60"), says("never")]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        prompt = asyncio.ensure_future(client.say(session, "wait"))
        await client.until(lambda: client.calls)
        await client.agent.cancel(session)
        async with asyncio.timeout(60):
            assert (await prompt).stop_reason == "cancelled"
        await client.until(lambda: client.endings)
        assert client.endings == ["failed"]


async def test_the_task_list_is_a_plan(tmp_path: Path, project: Path) -> None:
    todos = [{"id": "1", "content": "look"}, {"id": "2", "content": "mend"}]
    async with (
        ScriptedServer([calls("todo", todos=todos), says("Planned.")]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        await client.say(await opened(client, project), "plan")
        [plan] = [each for each in client.updates if isinstance(each, AgentPlanUpdate)]
        assert [entry.content for entry in plan.entries] == ["look", "mend"]


async def test_a_session_is_listed_loaded_and_forked_in_a_new_process(
    tmp_path: Path, project: Path
) -> None:
    steps = [calls("read_file", path="notes.txt"), says("It says first."), says("Forked.")]
    async with ScriptedServer(steps) as server:
        async with editor(tmp_path / "home", server.url) as client:
            session = await opened(client, project)
            await client.say(session, "read it")
        async with editor(tmp_path / "home", server.url) as client:
            listed = await client.agent.list_sessions(cwd=str(project))
            assert [each.session_id for each in listed.sessions] == [session]
            assert (await client.agent.list_sessions(cwd="/elsewhere")).sessions == []
            await client.agent.load_session(str(project), session, mcp_servers=[])
            said = [each for each in client.updates if isinstance(each, UserMessageChunk)]
            assert len(said) == 1 and client.text == "It says first."
            assert len(client.calls) == 1 and client.endings == ["completed"]
            fork = await client.agent.fork_session(session, str(project), mcp_servers=[])
            assert fork.session_id != session
            await client.say(fork.session_id, "go on")
            assert client.text.endswith("Forked.")
            with pytest.raises(RequestError, match="no session"):
                await client.agent.load_session(str(project), "nosuch", mcp_servers=[])


async def test_a_session_that_is_loaded_twice_at_once_is_opened_once(
    tmp_path: Path, project: Path
) -> None:
    async with ScriptedServer([says("One."), says("Two.")]) as server:
        async with editor(tmp_path / "home", server.url) as client:
            session = await opened(client, project)
            await client.say(session, "one")
        async with editor(tmp_path / "home", server.url) as client:
            load = client.agent.resume_session
            await asyncio.gather(*(load(session, str(project), mcp_servers=[]) for _ in range(3)))
            await client.say(session, "two")
            assert client.text == "Two."
            listed = await client.agent.list_sessions()
            assert [each.session_id for each in listed.sessions] == [session]
            await client.agent.close_session(session)
            await load(session, str(project), mcp_servers=[])


async def test_files_that_are_open_in_the_editor_are_read_and_written_there(
    tmp_path: Path, project: Path
) -> None:
    steps = [
        calls("read_file", path="notes.txt"),
        calls("write_file", path="notes.txt", content="from the agent\n"),
        says("Done."),
    ]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url, files=True) as client,
    ):
        path = str(project / "notes.txt")
        client.buffers[path] = "not saved yet\n"
        session = await opened(client, project)
        await client.agent.set_session_mode(session, "accept_edits")
        await client.say(session, "go")
        assert "not saved yet" in str(server.requests[1].body)
        assert client.buffers[path] == "from the agent\n"


async def test_what_was_done_through_the_editor_can_be_taken_back(
    tmp_path: Path, project: Path
) -> None:
    steps = [
        calls("read_file", path="notes.txt"),
        calls("write_file", path="notes.txt", content="from the agent\n"),
        calls("terminal", command="rm more.txt"),
        says("Done."),
    ]
    (project / "more.txt").write_text("more\n")
    home = tmp_path / "home"
    async with (
        ScriptedServer(steps) as server,
        editor(home, server.url, files=True, terminal=True, settings=WITH_TERMINALS) as client,
    ):
        path = str(project / "notes.txt")
        client.buffers[path] = "first\n"
        session = await opened(client, project)
        await client.agent.set_session_mode(session, "accept_edits")
        await client.say(session, "go")
        assert client.buffers[path] == "from the agent\n" and client.released
        assert not (project / "more.txt").exists()
        await client.say(session, "/rollback 1")
        assert (project / "notes.txt").read_text() == "first\n"
        assert (project / "more.txt").read_text() == "more\n"


async def test_the_model_is_switched_and_the_conversation_stays(
    tmp_path: Path, project: Path
) -> None:
    async with (
        ScriptedServer([says("One."), says("Two.")], models=["scripted", "other"]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        await client.say(session, "first")
        await client.agent.set_config_option("model", session, "other")
        await client.say(session, "second")
        assert [request.body["model"] for request in server.requests] == ["scripted", "other"]
        assert "One." in str(server.requests[1].body)


async def test_two_sessions_work_side_by_side_in_their_own_folders(
    tmp_path: Path, project: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    steps = [calls("terminal", command="pwd"), says("ok")] * 2
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        one, two = await opened(client, project), await opened(client, other)
        await client.say(one, "where")
        await client.say(two, "where")
        shown = [str(request.body) for request in server.requests]
        assert str(project) in shown[1] and str(other) in shown[3]


async def test_what_cannot_be_is_refused_in_words(tmp_path: Path, project: Path) -> None:
    async with (
        ScriptedServer([]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        with pytest.raises(RequestError):
            await client.agent.new_session("relative/path", mcp_servers=[])
        with pytest.raises(RequestError):
            await client.say("nosuch", "hi")
        session = await opened(client, project)
        await client.say(session, "/usage")
        assert "Context" in client.text and server.requests == []


def little(name: str = "little") -> McpServerStdio:
    return McpServerStdio(name=name, command=sys.executable, args=["-S", "-E", str(LITTLE)], env=[])


async def test_servers_of_the_editor_are_those_of_one_session(
    tmp_path: Path, project: Path
) -> None:
    search = calls("tool_search", query="say it again")
    use = calls("tool_call", name="mcp_acp_little_echo", arguments={"text": "hi"})
    steps = [search, use, says("Used."), use, says("Not mine.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        able = client.hello.agent_capabilities
        assert able is not None and able.mcp_capabilities is not None
        assert able.mcp_capabilities.http and able.mcp_capabilities.sse
        new = await client.agent.new_session(str(project), mcp_servers=[little()])
        await client.say(new.session_id, "use it")
        assert "mcp_acp_little_echo" in str(server.requests[1].body)
        assert "echo: hi" in str(server.requests[2].body)
        other = await opened(client, project)
        await client.say(other, "use it")
        assert client.endings == ["completed", "completed", "failed"]
        await client.agent.close_session(new.session_id)
        log = tmp_path / "home" / "logs" / "mcp" / "acp_little.log"
        assert "the little one is there" in log.read_text()


async def test_a_server_that_the_editor_names_in_vain_is_reported(
    tmp_path: Path, project: Path
) -> None:
    ghost = McpServerStdio(name="ghost", command="/no/such/program", args=[], env=[])
    async with (
        ScriptedServer([says("Hello.")]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        new = await client.agent.new_session(str(project), mcp_servers=[ghost])
        await client.until(lambda: "command '/no/such/program' was not found" in client.text)
        assert (await client.say(new.session_id, "hi")).stop_reason == "end_turn"


async def test_words_for_the_running_turn_do_not_wait_for_its_end(
    tmp_path: Path, project: Path
) -> None:
    steps = [calls("terminal", command="until [ -e go ]; do sleep 0.05; done"), says("Done.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        prompt = asyncio.ensure_future(client.say(session, "wait"))
        await client.until(lambda: client.calls)
        assert (await client.say(session, "/steer and be brief")).stop_reason == "end_turn"
        assert not prompt.done()
        (project / "go").touch()
        assert (await prompt).stop_reason == "end_turn"
        assert "and be brief" in str(server.requests[1].body)


async def test_a_session_that_is_open_elsewhere_is_gone_on_with_in_a_copy(
    tmp_path: Path, project: Path
) -> None:
    steps = [says("One."), says("In the copy."), says("In the first.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url) as first,
        editor(tmp_path / "home", server.url) as second,
    ):
        session = await opened(first, project)
        await first.say(session, "hi")
        await second.agent.load_session(str(project), session, mcp_servers=[])
        await second.until(lambda: "is open in another process" in second.text)
        await second.say(session, "only here")
        assert "In the copy." in second.text
        await first.say(session, "and here")
        assert "only here" not in str(server.requests[2].body)


async def test_the_mode_that_was_chosen_is_reported(tmp_path: Path, project: Path) -> None:
    async with (
        ScriptedServer([]) as server,
        editor(tmp_path / "home", server.url) as client,
    ):
        session = await opened(client, project)
        await client.agent.set_session_mode(session, "plan")
        updates = [each for each in client.updates if isinstance(each, CurrentModeUpdate)]
        assert [each.current_mode_id for each in updates] == ["plan"]


async def test_commands_run_in_terminals_of_the_editor_where_that_is_wanted(
    tmp_path: Path, project: Path
) -> None:
    steps = [calls("terminal", command="cat notes.txt; exit 3"), says("Done.")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url, terminal=True, settings=WITH_TERMINALS) as client,
    ):
        await client.say(await opened(client, project), "go")
        assert client.released == ["terminal-0"]
        result = str(server.requests[1].body["messages"][-1])
        assert "first" in result and "3" in result


async def test_a_command_in_a_terminal_of_the_editor_can_be_cancelled(
    tmp_path: Path, project: Path
) -> None:
    steps = [calls("terminal", command="echo begun; sleep 600"), says("never")]
    async with (
        ScriptedServer(steps) as server,
        editor(tmp_path / "home", server.url, terminal=True, settings=WITH_TERMINALS) as client,
    ):
        session = await opened(client, project)
        prompt = asyncio.ensure_future(client.say(session, "go"))
        await client.until(
            lambda: any(
                "begun" in str(each.content)
                for each in client.updates
                if isinstance(each, ToolCallProgress)
            )
        )
        await client.agent.cancel(session)
        async with asyncio.timeout(60):
            assert (await prompt).stop_reason == "cancelled"
        assert client.released == ["terminal-0"]
        assert client.shells["terminal-0"].returncode == -signal.SIGKILL


async def test_terminals_of_the_editor_are_left_alone_unless_they_are_wanted(
    tmp_path: Path, project: Path
) -> None:
    async with (
        ScriptedServer([calls("terminal", command="true"), says("Done.")]) as server,
        editor(tmp_path / "home", server.url, terminal=True) as client,
    ):
        await client.say(await opened(client, project), "go")
        assert client.shells == {} and client.endings == ["completed"]


async def test_the_mode_of_a_session_is_kept_for_later_editors_and_its_forks(
    tmp_path: Path, project: Path
) -> None:
    async with ScriptedServer([says("One."), says("Two.")]) as server:
        async with editor(tmp_path / "home", server.url) as client:
            session = await opened(client, project)
            await client.say(session, "hello")
            await client.agent.set_session_mode(session, "plan")
        async with editor(tmp_path / "home", server.url) as client:
            loaded = await client.agent.load_session(str(project), session, mcp_servers=[])
            assert loaded.modes
            assert loaded.modes.current_mode_id == "plan"
            fork = await client.agent.fork_session(session, str(project), mcp_servers=[])
            assert fork.modes
            assert fork.modes.current_mode_id == "plan"
            new = await client.agent.new_session(str(project), mcp_servers=[])
            assert new.modes
            assert new.modes.current_mode_id == "default"
            with pytest.raises(RequestError):
                await client.agent.list_sessions(cursor="of somebody else")
