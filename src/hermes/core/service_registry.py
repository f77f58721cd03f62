"""A typed registry of the services that tools ask their context for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Factory = Callable[[], object]


class ServiceRegistry:
    """Creates services by class. Factories are registered under "module:Class", so that nothing is
    imported before a tool needs it; a class without a factory is called without arguments."""

    def __init__(self, factories: Callable[[], dict[str, Factory]] = dict) -> None:
        # Built for each lookup: an idle session must not keep a table of its own.
        self._factories = factories

    def replace(self, path: str, wrap: Callable[[object], object]) -> ServiceRegistry:
        """Returns a registry in which `wrap` replaces the service of this path."""

        def replaced() -> dict[str, Factory]:
            factories = self._factories()
            inner = factories[path]
            return {**factories, path: lambda: wrap(inner())}

        return ServiceRegistry(replaced)

    def create(self, kind: type[T]) -> T:
        factory = self._factories().get(f"{kind.__module__}:{kind.__qualname__}")
        if factory is None:
            return kind()
        service = factory()
        if not isinstance(service, kind):
            raise TypeError(f"Expected {kind.__qualname__}, the factory created {type(service)}")
        return service

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._factories())
