"""A real container engine, if this machine has one that works, and an image to try it with."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache

from hermes.config.execution_settings import TerminalSettings

# Any image with bash, coreutils, findutils and grep; made or pulled by whoever runs the tests.
IMAGE = os.environ.get("HERMES_TEST_IMAGE", "localhost/local/bookworm:min")
# What nested virtual machines need; harmless elsewhere.
_ULIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


@lru_cache(maxsize=1)
def usable() -> TerminalSettings | str:
    """Settings that work here, or why there are none."""
    if shutil.which("podman") is None and shutil.which("docker") is None:
        return "neither docker nor podman is installed"
    tried = [
        TerminalSettings(backend="docker"),
        TerminalSettings(backend="podman"),
        TerminalSettings(
            backend="podman", docker_engine_args=("--runtime=runc", "--cgroup-manager=cgroupfs")
        ),
    ]
    for settings in tried:
        program = shutil.which(settings.backend)
        if program and _works((program, *settings.docker_engine_args)):
            return TerminalSettings(
                backend=settings.backend,
                docker_image=IMAGE,
                docker_engine_args=settings.docker_engine_args,
                docker_network=False,
                container_memory=512,
                container_disk=0,
                docker_extra_args=_ULIMITS,
            )
    return f"no container engine here can run {IMAGE}"


def _works(engine: tuple[str, ...]) -> bool:
    words = (*engine, "run", "--rm", "--network=none", *_ULIMITS, IMAGE, "true")
    try:
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def remove_containers() -> None:
    """Those that tests of this process have made."""
    settings = usable()
    assert not isinstance(settings, str)
    engine = (shutil.which(settings.backend) or "", *settings.docker_engine_args)
    named = (*engine, "ps", "-a", "-q", "--filter", f"name=hermes-test-{os.getpid()}-")
    found = subprocess.run(named, capture_output=True, check=True, text=True).stdout.split()
    if found:
        subprocess.run((*engine, "rm", "-f", "-v", *found), capture_output=True, check=True)
