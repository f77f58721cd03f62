"""A real container engine, if this machine has one that works, and an image to try it with."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache

from hermes.workspaces.remote.containers import ContainerSettings
from hermes.workspaces.runner import ResourceLimits

# Any image with bash, coreutils, findutils and grep; made or pulled by whoever runs the tests.
IMAGE = os.environ.get("HERMES_TEST_IMAGE", "localhost/local/bookworm:min")
# What nested virtual machines need; harmless elsewhere.
_ULIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


@lru_cache(maxsize=1)
def usable() -> ContainerSettings | str:
    """Settings that work here, or why there are none."""
    if shutil.which("podman") is None and shutil.which("docker") is None:
        return "neither docker nor podman is installed"
    tried = [
        ContainerSettings(engine="docker"),
        ContainerSettings(engine="podman"),
        ContainerSettings(
            engine="podman", engine_options=("--runtime=runc", "--cgroup-manager=cgroupfs")
        ),
    ]
    for settings in tried:
        program = shutil.which(settings.engine or "docker")
        if program and _works((program, *settings.engine_options)):
            return ContainerSettings(
                image=IMAGE,
                engine=settings.engine,
                engine_options=settings.engine_options,
                network=False,
                limits=ResourceLimits(cpus=1, memory_mb=512, processes=200),
                extra=_ULIMITS,
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
    engine = (shutil.which(settings.engine or "docker") or "", *settings.engine_options)
    named = (*engine, "ps", "-a", "-q", "--filter", f"name=hermes-test-{os.getpid()}-")
    found = subprocess.run(named, capture_output=True, check=True, text=True).stdout.split()
    if found:
        subprocess.run((*engine, "rm", "-f", "-v", *found), capture_output=True, check=True)
