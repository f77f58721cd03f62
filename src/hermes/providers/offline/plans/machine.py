"""Plans that report about the machine."""

from __future__ import annotations

import re

from hermes.core.messages import ToolResult
from hermes.providers.offline.answers import explain_failure
from hermes.providers.offline.plan import (
    Plan,
    StepOutcome,
    Steps,
    StepTask,
    format_size,
    inline_code,
    markdown_table,
    run_command,
    terminal,
)
from hermes.providers.offline.tool_output import has_succeeded, output, output_lines, was_refused

TOP = 12

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def _one_line(script: str, key: str) -> Plan:
    """A command whose single line of output goes into one sentence."""

    def plan(task: StepTask) -> Steps:
        result = yield from run_command(script)
        return task.answer(key, value=output(result).strip() or "–")

    return plan


where_am_i = _one_line("pwd", "machine.where")
who_am_i = _one_line("whoami", "machine.who")
date_time = _one_line("date", "machine.date")
uptime = _one_line("uptime", "machine.uptime")
hostname = _one_line("hostname", "machine.hostname")
system = _one_line("uname -srm", "machine.system")


def disk_free(task: StepTask) -> Steps:
    script = "df -h ."
    result = yield from terminal(script)
    fields = output_lines(result)[-1].split() if output_lines(result) else []
    # A long device name puts the numbers on a line of their own.
    numbers = [field for field in fields if field[0].isdigit()]
    if not has_succeeded(result) or len(numbers) < 4:
        return explain_failure(task, result, script)
    total, used, free, share = numbers[:4]
    return task.answer("machine.disk", total=total, used=used, free=free, share=share)


def memory(task: StepTask) -> Steps:
    script = "free -b"
    result = yield from terminal(script)
    found = re.search(r"^\S*?:\s+(\d+)\s+(\d+)\s+\d+\s+\d+\s+\d+\s+(\d+)", output(result), re.M)
    if has_succeeded(result) and found:
        total, _, available = (int(number) for number in found.groups())
        return _memory(task, total, available)
    script = "cat /proc/meminfo"
    result = yield from terminal(script)
    amounts = dict(re.findall(r"^(\w+):\s+(\d+) kB", output(result), re.M))
    if not has_succeeded(result) or "MemTotal" not in amounts:
        return explain_failure(task, result, script)
    total = int(amounts["MemTotal"]) * 1024
    return _memory(task, total, int(amounts.get("MemAvailable", "0")) * 1024)


def cpu(task: StepTask) -> Steps:
    script = "lscpu"
    result = yield from terminal(script)
    if has_succeeded(result):
        facts = dict(re.findall(r"^([^:\n]+):[ \t]*(.+)$", output(result), re.M))
        model = facts.get("Model name", facts.get("Architecture", "–"))
        return task.answer("machine.cpu", model=model, cores=facts.get("CPU(s)", "–"))
    script = "nproc"
    result = yield from run_command(script)
    return task.answer("machine.cores", cores=output(result).strip())


def programs(task: StepTask) -> Steps:
    """The busiest programs of the machine, not the background processes of this session."""
    script = "ps -e -o pid,pcpu,pmem,comm"
    result = yield from terminal(script)
    rows = [line.split(None, 3) for line in output_lines(result)[1:]]
    rows = [row for row in rows if len(row) == 4]
    if not has_succeeded(result) or not rows:
        return explain_failure(task, result, script)
    rows.sort(key=lambda row: (-_amount(row[1]), -_amount(row[2])))
    heads = ("PID", "CPU %", task.say("head.memory"), task.say("head.program"))
    head = task.say("machine.programs", count=len(rows), shown=min(TOP, len(rows)))
    shown = [[*row[:3], inline_code(row[3])] for row in rows[:TOP]]
    return StepOutcome(text=f"{head}\n\n{markdown_table(heads, shown)}")


def version(task: StepTask) -> Steps:
    program = task.slot("program").casefold()
    program = "python3" if program == "python" else program
    if not _NAME.fullmatch(program):
        return task.fail("machine.no_name", name=inline_code(program))
    script = f"{program} --version"
    result = yield from run_command(script)
    return task.answer("machine.version", program=program, value=_first_line(result))


def which_program(task: StepTask) -> Steps:
    program = task.slot("program")
    if not _NAME.fullmatch(program):
        return task.fail("machine.no_name", name=inline_code(program))
    script = f"which {program}"
    result = yield from terminal(script)
    if was_refused(result):
        return explain_failure(task, result, script)
    if not has_succeeded(result):
        return task.answer("machine.not_installed", program=inline_code(program))
    return task.answer(
        "machine.which", program=inline_code(program), path=inline_code(_first_line(result))
    )


def variable(task: StepTask) -> Steps:
    name = task.slot("variable", "PATH").lstrip("$")
    if _SECRET.search(name):
        return task.answer("machine.secret", name=inline_code(name))
    if not re.fullmatch(r"\w+", name):
        return task.fail("machine.no_name", name=inline_code(name))
    script = f"printenv {name}"
    result = yield from terminal(script)
    if was_refused(result):
        return explain_failure(task, result, script)
    if not has_succeeded(result):
        return task.answer("machine.unset", name=inline_code(name))
    value = output(result).strip()
    if name == "PATH":
        folders = [inline_code(folder) for folder in value.split(":") if folder]
        return StepOutcome(text=f"{task.say('machine.path')}\n\n{task.say.bullets(folders)}")
    return task.answer("machine.variable", name=inline_code(name), value=inline_code(value))


def _memory(task: StepTask, total: int, available: int) -> StepOutcome:
    used = max(0, total - available)
    return task.answer(
        "machine.memory",
        total=format_size(total),
        used=format_size(used),
        available=format_size(available),
    )


def _amount(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return 0.0


def _first_line(result: ToolResult) -> str:
    lines = output_lines(result)
    return lines[0].strip() if lines else "–"
