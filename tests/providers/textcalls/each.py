"""One test for many forms: to start a test takes longer than to hear a reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from tests.providers.textcalls.forms import FORMS, Form

Test = Callable[[Form], Awaitable[None]]


def with_each(forms: Iterable[Form]) -> Callable[[Test], Callable[[], Awaitable[None]]]:
    """The test is run with each of the forms; a failure names the one that failed."""

    def over(test: Test) -> Callable[[], Awaitable[None]]:
        async def all_of_them() -> None:
            for form in forms:
                try:
                    await test(form)
                except Exception as error:
                    error.add_note(f"The form is {form.name}.")
                    raise

        # Not `functools.wraps`, which would tell of an argument too.
        all_of_them.__name__ = test.__name__
        all_of_them.__doc__ = test.__doc__
        return all_of_them

    return over


every = with_each(FORMS)
