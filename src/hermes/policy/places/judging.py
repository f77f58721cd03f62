"""Judges what is done with a file: read, write, attach. A path is judged in all its readings."""

from __future__ import annotations

import os.path
import posixpath
import time
from collections.abc import Callable

from hermes.codec.values import Value
from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.places.links import GuardedFiles, special
from hermes.policy.places.places import Holding, Places
from hermes.policy.places.safe import SafeRoots
from hermes.policy.places.spelling import absolute, readings, unusable

MEDIA = ("MEDIA:", "media:")


class _Candidates(Value):
    """`plain` is the path as written, with links followed; `all_` every reading of it."""

    plain: str
    all_: tuple[str, ...]


class Files:
    """The rules about files for one workspace. Nothing is opened; links are followed by name, but
    not those of a `far` machine, which this one does not know. `safe` is where anything may be
    written at all."""

    def __init__(
        self,
        root: str,
        home: str,
        state: str,
        now: Callable[[], float] = time.monotonic,
        *,
        far: bool = False,
        safe: SafeRoots | None = None,
    ) -> None:
        self._far = far
        self._safe = safe or SafeRoots()
        self.places = Places(root if far else os.path.realpath(root), home, os.path.realpath(state))
        self._guarded_files = GuardedFiles(home, self.places.state, now)

    def read(self, text: str, cwd: str = "") -> Decision:
        """Paths as a person or model writes them; relative ones count from `cwd` or the root."""
        if why := unusable(text):
            return Deny(reason=why, category="unclear")
        found = self._candidates(text, cwd)
        if refused := self._guarded(found, readable=True):
            return refused
        if holding := self._secret(found):
            if holding.strict:
                return _deny(found, holding)
            return Ask(
                reason=f"{found.plain} holds {holding.words}.",
                category=holding.category,
                scopes=("once",),
            )
        # Who has a home on another machine is not known here.
        if not self._far and any(map(self.places.of_another_person, found.all_)):
            reason = f"{found.plain} belongs to another person."
            return Ask(reason=reason, category="outside", scopes=("once", "session"))
        return Allow(harmless=True)

    def write(self, text: str, cwd: str = "") -> Decision:
        """For anything that makes, changes, moves or deletes a file."""
        if why := unusable(text):
            return Deny(reason=why, category="unclear")
        found = self._candidates(text, cwd)
        if refused := self._guarded(found, readable=False):
            return refused
        for path in found.all_:
            if why := self._safe.refused(path):
                return Deny(reason=why, category="settings")
        if holding := self._secret(found):
            return _deny(found, holding)
        for path in found.all_:
            if self.places.of_the_system(path):
                return Deny(reason=f"{path} belongs to the system.", category="system_config")
        for path in found.all_:
            if why := self.places.started_later(path):
                return Ask(reason=f"{path} {why}.", category="persistence")
        return self._placed(found)

    def attach(self, text: str, cwd: str = "") -> Decision:
        """A file that is sent to somebody. What lies elsewhere needs a person's word."""
        for prefix in MEDIA:
            text = text.strip().removeprefix(prefix).strip("\"'` ")
        if why := unusable(text):
            return Deny(reason=why, category="unclear")
        found = self._candidates(text, cwd)
        if refused := self._guarded(found, readable=True) or self._given_away(found):
            return refused
        if self._here(found) or self.places.made_to_be_sent(found.plain):
            return Allow()
        reason = f"{found.plain} is outside the workspace and would be sent."
        return Ask(reason=reason, category="outside", scopes=("once",))

    def refer(self, text: str, cwd: str = "") -> Decision:
        """A file that a message refers to with `@`; only what lies in the workspace."""
        if why := unusable(text):
            return Deny(reason=why, category="unclear")
        found = self._candidates(text, cwd)
        if refused := self._guarded(found, readable=False) or self._given_away(found):
            return refused
        if not all(self.places.in_workspace(path) for path in found.all_):
            return Deny(
                reason=f"{found.plain} is outside the allowed workspace.", category="outside"
            )
        return Allow(harmless=True)

    def _candidates(self, text: str, cwd: str) -> _Candidates:
        base = posixpath.join(self.places.root, cwd) if cwd else self.places.root
        follow = not self._far
        base = os.path.realpath(base) if cwd and follow else base
        plain, *others = readings(text, self.places.home)
        found = absolute(plain, base, follow=follow)
        rest = [path for other in others for path in absolute(other, base, follow=follow)]
        return _Candidates(plain=found[1] if len(found) > 1 else found[0], all_=(*found, *rest))

    def _guarded(self, found: _Candidates, *, readable: bool) -> Deny | None:
        """What is refused for reading and writing alike."""
        for path in found.all_:
            if self.places.own_state(path) and not (
                readable and all(self.places.readable_state(each) for each in found.all_)
            ):
                return Deny(reason=f"{path} is part of Hermes' own state.", category="own_state")
        for path in found.all_:
            if holding := self.places.device(path):
                return _deny(found, holding)
        if not self._far and (what := special(found.plain)):
            return Deny(reason=f"{found.plain} is {what}, not a file.", category="device")
        return None

    def _secret(self, found: _Candidates) -> Holding | None:
        for path in found.all_:
            if holding := self.places.secret(path):
                return holding
        if other := self._guarded_files.twin(found.plain):
            own = self.places.own_state(other)
            words = f"another name of {other}"
            return Holding(category="own_state" if own else "credentials", words=words, strict=own)
        return None

    def _given_away(self, found: _Candidates) -> Deny | None:
        if holding := self._secret(found):
            return _deny(found, holding)
        for path in found.all_:
            if self.places.start_file(path):
                reason = f"{path} is a start file of a shell, which often holds secrets."
                return Deny(reason=reason, category="credentials")
        return None

    def _placed(self, found: _Candidates) -> Decision:
        if self._here(found):
            return Allow()
        outside = next(path for path in found.all_ if not self._known(path))
        return Ask(
            reason=f"{outside} is outside the workspace {self.places.root}.", category="overwrite"
        )

    def _here(self, found: _Candidates) -> bool:
        return all(self._known(path) for path in found.all_)

    def _known(self, path: str) -> bool:
        return self.places.in_workspace(path) or self.places.is_scratch(path)


def _deny(found: _Candidates, holding: Holding) -> Deny:
    return Deny(reason=f"{found.plain} is or holds {holding.words}.", category=holding.category)
