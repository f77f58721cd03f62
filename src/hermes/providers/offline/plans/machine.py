"""Plans that report about the machine."""

from __future__ import annotations

import re

from hermes.core.messages import ToolResult
from hermes.providers.offline.failures import failure
from hermes.providers.offline.plan import Outcome, Plan, Steps, Task, run_command, terminal
from hermes.providers.offline.tool_answers import output, output_lines, succeeded, was_refused
from hermes.providers.offline.voice import code, size, table

TOP = 12

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def _one_line(script: str, key: str) -> Plan:
    """A command whose single line of output goes into one sentence."""

    def plan(task: Task) -> Steps:
        result = yield from run_command(script)
        return task.done(key, value=output(result).strip() or "–")

    return plan


where_am_i = _one_line("pwd", "machine.where")
who_am_i = _one_line("whoami", "machine.who")
date_time = _one_line("date", "machine.date")
uptime = _one_line("uptime", "machine.uptime")
hostname = _one_line("hostname", "machine.hostname")
system = _one_line("uname -srm", "machine.system")


def disk_free(task: Task) -> Steps:
    script = "df -h ."
    result = yield from terminal(script)
    fields = output_lines(result)[-1].split() if output_lines(result) else []
    # A long device name puts the numbers on a line of their own.
    numbers = [field for field in fields if field[0].isdigit()]
    if not succeeded(result) or len(numbers) < 4:
        return failure(task, result, script)
    total, used, free, share = numbers[:4]
    return task.done("machine.disk", total=total, used=used, free=free, share=share)


def memory(task: Task) -> Steps:
    script = "free -b"
    result = yield from terminal(script)
    found = re.search(r"^\S*?:\s+(\d+)\s+(\d+)\s+\d+\s+\d+\s+\d+\s+(\d+)", output(result), re.M)
    if succeeded(result) and found:
        total, _, available = (int(number) for number in found.groups())
        return _memory(task, total, available)
    script = "cat /proc/meminfo"
    result = yield from terminal(script)
    amounts = dict(re.findall(r"^(\w+):\s+(\d+) kB", output(result), re.M))
    if not succeeded(result) or "MemTotal" not in amounts:
        return failure(task, result, script)
    total = int(amounts["MemTotal"]) * 1024
    return _memory(task, total, int(amounts.get("MemAvailable", "0")) * 1024)


def cpu(task: Task) -> Steps:
    script = "lscpu"
    result = yield from terminal(script)
    if succeeded(result):
        facts = dict(re.findall(r"^([^:\n]+):[ \t]*(.+)$", output(result), re.M))
        model = facts.get("Model name", facts.get("Architecture", "–"))
        return task.done("machine.cpu", model=model, cores=facts.get("CPU(s)", "–"))
    script = "nproc"
    result = yield from run_command(script)
    return task.done("machine.cores", cores=output(result).strip())


def programs(task: Task) -> Steps:
    """The busiest programs of the machine, not the background processes of this session."""
    script = "ps -e -o pid,pcpu,pmem,comm"
    result = yield from terminal(script)
    rows = [line.split(None, 3) for line in output_lines(result)[1:]]
    rows = [row for row in rows if len(row) == 4]
    if not succeeded(result) or not rows:
        return failure(task, result, script)
    rows.sort(key=lambda row: (-_amount(row[1]), -_amount(row[2])))
    heads = ("PID", "CPU %", task.say("head.memory"), task.say("head.program"))
    head = task.say("machine.programs", count=len(rows), shown=min(TOP, len(rows)))
    shown = [[*row[:3], code(row[3])] for row in rows[:TOP]]
    return Outcome(text=f"{head}\n\n{table(heads, shown)}")


def version(task: Task) -> Steps:
    program = task.slot("program").casefold()
    program = "python3" if program == "python" else program
    if not _NAME.fullmatch(program):
        return task.failed("machine.no_name", name=code(program))
    script = f"{program} --version"
    result = yield from run_command(script)
    return task.done("machine.version", program=program, value=_first_line(result))


def which_program(task: Task) -> Steps:
    program = task.slot("program")
    if not _NAME.fullmatch(program):
        return task.failed("machine.no_name", name=code(program))
    script = f"which {program}"
    result = yield from terminal(script)
    if was_refused(result):
        return failure(task, result, script)
    if not succeeded(result):
        return task.done("machine.not_installed", program=code(program))
    return task.done("machine.which", program=code(program), path=code(_first_line(result)))


def variable(task: Task) -> Steps:
    name = task.slot("variable", "PATH").lstrip("$")
    if _SECRET.search(name):
        return task.done("machine.secret", name=code(name))
    if not re.fullmatch(r"\w+", name):
        return task.failed("machine.no_name", name=code(name))
    script = f"printenv {name}"
    result = yield from terminal(script)
    if was_refused(result):
        return failure(task, result, script)
    if not succeeded(result):
        return task.done("machine.unset", name=code(name))
    value = output(result).strip()
    if name == "PATH":
        folders = [code(folder) for folder in value.split(":") if folder]
        return Outcome(text=f"{task.say('machine.path')}\n\n{task.say.bullets(folders)}")
    return task.done("machine.variable", name=code(name), value=code(value))


def _memory(task: Task, total: int, available: int) -> Outcome:
    used = max(0, total - available)
    return task.done(
        "machine.memory", total=size(total), used=size(used), available=size(available)
    )


def _amount(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return 0.0


def _first_line(result: ToolResult) -> str:
    lines = output_lines(result)
    return lines[0].strip() if lines else "–"
