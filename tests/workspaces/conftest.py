"""A workspace on a real folder, with a shell that reads nobody's start files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.workspaces.containers import remove_containers, usable
from tests.workspaces.fake_daytona import FakeDaytona
from tests.workspaces.fake_modal import FakeModal
from tests.workspaces.places import (
    AnyPlace,
    Place,
    apptainer_missing,
    apptainer_place,
    confined_missing,
    container_place,
    daytona_place,
    local_place,
    modal_place,
    ssh_place,
)
from tests.workspaces.sshd import Sshd
from tests.workspaces.sshd import missing as ssh_missing


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    await place.close()


PLACES = (
    "local",
    "bubblewrap",
    "landlock",
    "auto",
    "ssh",
    pytest.param("apptainer", marks=pytest.mark.slow),
    pytest.param("container", marks=pytest.mark.slow),
    pytest.param("daytona", marks=pytest.mark.slow),
    pytest.param("modal", marks=pytest.mark.slow),
)
# Files are reached from the program itself, so for them a confined place is the local one.
CONFINED = ("bubblewrap", "landlock", "auto")
PLACES_OF_FILES = tuple(
    pytest.param(place, marks=pytest.mark.slow) if place in CONFINED else place for place in PLACES
)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if why := ssh_missing():
        pytest.skip(why)
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture(params=PLACES)
async def anyplace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyPlace]:
    """Every place that this machine has, each with a reason when it has not."""
    match request.param:
        case "ssh":
            place = ssh_place(tmp_path, request.getfixturevalue("sshd"))
        case "local":
            place = local_place(tmp_path)
        case "daytona":
            fake = FakeDaytona(tmp_path / "daytona")
            request.addfinalizer(fake.stop)
            place = daytona_place(tmp_path, fake)
        case "modal":
            modal = FakeModal(tmp_path / "modal")
            request.addfinalizer(modal.stop)
            place = modal_place(tmp_path, modal)
        case "apptainer":
            if why := apptainer_missing():
                pytest.skip(why)
            place = apptainer_place(tmp_path)
        case "container":
            if isinstance(settings := usable(), str):
                pytest.skip(settings)
            place = container_place(tmp_path, settings)
        case wanted:
            if why := confined_missing(wanted):
                pytest.skip(why)
            # As it is by default, and as strict as it can be.
            place = local_place(tmp_path, wanted, ordinary=wanted == "auto")
    yield place
    await place.close()
    if request.param == "container":
        remove_containers()
