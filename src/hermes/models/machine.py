"""What this machine can run: memory, cores, an estimate of speed, and the GGUF files on it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.codec.values import Value

GB = 1_000_000_000
# Weights are read once per token, so memory bandwidth limits the speed. One thread of an ordinary
# processor reads about 5 GB/s, and all together about 50 GB/s.
THREAD_BANDWIDTH = 5 * GB
MOST_BANDWIDTH = 50 * GB
# Usual 4-bit quantisations take 4.5 bits per parameter.
BITS = 4.5
# Beside the weights: the context and the program.
_SHARE, _MORE = 1.2, GB // 2
_SIZES = (1, 3, 4, 8, 14, 32, 70)
# Tokens per second below which a conversation is tedious.
USEFUL_SPEED = 3.0
_DEPTH = 6
_MOST_FILES = 200


class Machine(Value):
    """Memory in bytes, and processor cores that this process may use."""

    memory: int
    cores: int

    @staticmethod
    def read() -> Machine:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = _read_limit(Path("/sys/fs/cgroup/memory.max"))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        return Machine(memory=min(memory, limit or memory), cores=cores or os.cpu_count() or 1)

    def fits(self, size: int) -> bool:
        """Return whether weights of this size and their context fit into the memory."""
        return size * _SHARE + _MORE <= self.memory

    def tokens_per_second(self, size: int) -> float | None:
        """Estimate the speed of a model on the processor: memory bandwidth divided by the size of
        the weights. Hermes leaves one core to other programs. A graphics card is faster."""
        if not size:
            return None
        bandwidth = min(max(1, self.cores - 1) * THREAD_BANDWIDTH, MOST_BANDWIDTH)
        return round(bandwidth / size, 1)

    def advice(self) -> str:
        """Return which model sizes suit this machine, in one sentence."""
        fitting = [size for size in _SIZES if self.fits(bytes_of(size * GB))]
        if not fitting:
            return "This machine has too little memory for a local model; use a hosted one."
        useful = [size for size in fitting if (self._speed(size) or 0) >= USEFUL_SPEED]
        good = max(
            useful, default=min(size for size in fitting if size >= 3 or size == fitting[-1])
        )
        text = (
            f"With {self.memory / GB:.0f} GB of memory and {self.cores} cores, a model of {good}B"
        )
        text += f" parameters ({bytes_of(good * GB) / GB:.1f} GB at 4 bits) writes about"
        text += f" {self._speed(good):g} tokens per second; at most {fitting[-1]}B fit."
        return text

    def _speed(self, size: int) -> float | None:
        return self.tokens_per_second(bytes_of(size * GB))


def bytes_of(parameters: int) -> int:
    """Return the size of weights at 4 bits."""
    return int(parameters * BITS / 8)


def find_gguf_files(env: Mapping[str, str], *folders: Path) -> list[Path]:
    """Return the GGUF files in these folders and in those of other programs: ~/models, LM Studio,
    llama.cpp, Hugging Face and Ollama. Only the first part of a divided file is listed."""
    user = Path(env.get("HOME", "~")).expanduser()
    cache = Path(env.get("XDG_CACHE_HOME") or user / ".cache")
    deep = (
        user / "models",
        user / ".lmstudio" / "models",
        cache / "lm-studio" / "models",
        cache / "llama.cpp",
        Path(env.get("HF_HOME") or cache / "huggingface") / "hub",
    )
    found = [path for folder in folders for path in sorted(folder.glob("*.gguf"))]
    for folder in deep:
        found += _walk(folder)
    found += _ollama_files(Path(env.get("OLLAMA_MODELS") or user / ".ollama" / "models"))
    unique = {path.resolve(): path for path in reversed(found) if _is_first_part(path)}
    return [*reversed(unique.values())][:_MOST_FILES]


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the GGUF files below a folder, down to a limited depth."""
    for parent, names, files in os.walk(folder):
        if len(Path(parent).relative_to(folder).parts) >= _DEPTH:
            names.clear()
        names.sort()
        yield from (Path(parent) / name for name in sorted(files) if name.endswith(".gguf"))


def _ollama_files(folder: Path) -> Iterator[Path]:
    """Yield the weights that the manifests of Ollama name; its files have no suffix."""
    for manifest in sorted(folder.glob("manifests/*/*/*/*")):
        try:
            layers = json.loads(manifest.read_text("utf-8"))["layers"]
            digests = [
                each["digest"] for each in layers if each["mediaType"].endswith("image.model")
            ]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not a manifest
        for digest in digests:
            if (blob := folder / "blobs" / digest.replace(":", "-")).is_file():
                yield blob


def _is_first_part(path: Path) -> bool:
    return "-of-" not in path.name or "-00001-of-" in path.name


def parse_ollama_host(text: str) -> int:
    """Return the port of OLLAMA_HOST if it is on this machine; 0 otherwise."""
    host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    local = host in ("", "127.0.0.1", "localhost", "0.0.0.0", "[::1]")
    return int(port) if local and port.isdecimal() else 0


def _read_limit(path: Path) -> int:
    """Return the memory limit of a container; 0 if there is none."""
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() else 0
