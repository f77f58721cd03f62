"""Scheduled jobs in the gateway: the scheduler as background work, and the way of its output into
chats."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.app.app import App
from hermes.config.gateway_settings import PlatformOptions
from hermes.core.errors import HermesError, PostRejected
from hermes.cron.delivery import ORIGIN, DeliveryReport, JobOrigin
from hermes.cron.due import RunRequest
from hermes.cron.service import CronService
from hermes.hosting.job_sessions import make_scheduler
from hermes.surfaces.gateway.conversations import Conversations
from hermes.surfaces.gateway.directory import ChannelDirectory
from hermes.surfaces.gateway.manifests import ConfiguredPlatform
from hermes.surfaces.gateway.platform import Address, AttachmentKind, OutboundFile
from hermes.surfaces.gateway.targets import home_address, parse_target

# The target that means every home channel.
ALL = "all"
_KINDS: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}


class JobDelivery:
    """Sends the output of jobs by the platforms of this process."""

    def __init__(
        self,
        chat: Conversations,
        platforms: Mapping[str, ConfiguredPlatform],
        directory: ChannelDirectory,
    ) -> None:
        self._chat = chat
        self._platforms = platforms
        self._directory = directory

    @property
    def _options(self) -> dict[str, PlatformOptions]:
        return {name: each.options for name, each in self._platforms.items()}

    async def deliver(
        self,
        target: str,
        text: str,
        *,
        key: str,
        files: Sequence[Path] = (),
        origin: JobOrigin | None = None,
        mirror: bool = False,
    ) -> DeliveryReport:
        """Send to one target. A chat that is gone is replaced by the home channel of its
        platform."""
        if not self._options:
            return DeliveryReport(state="unavailable", detail="no platform is configured")
        try:
            addresses = self._resolve(target, origin)
        except HermesError as error:
            return DeliveryReport(state="failed", detail=str(error))
        attachments = [_attachment(path) for path in files]
        details: list[str] = []
        failures: list[str] = []
        for address in addresses:
            report = await self._send(address, text, key, attachments, mirror=mirror)
            if report.state == "failed" and target == ORIGIN and self._has_home(address):
                home = home_address(self._options[address.platform])
                report = await self._send(home, text, key, attachments, mirror=mirror)
            (failures if report.state == "failed" else details).append(report.detail)
        if failures:
            return DeliveryReport(state="failed", detail="; ".join(failures))
        return DeliveryReport(state="delivered", detail=", ".join(details))

    async def _send(
        self, to: Address, text: str, key: str, files: Sequence[OutboundFile], *, mirror: bool
    ) -> DeliveryReport:
        place = ":".join(filter(None, (to.platform, to.chat_id, to.thread_id)))
        sent = await self._chat.send(to, text, key=f"{key}:{place}", files=files, mirror=mirror)
        if sent.state in ("confirmed", "waiting"):
            # What waits is in the ledger and follows as soon as the platform is reachable.
            return DeliveryReport(state="delivered", detail=place)
        return DeliveryReport(state="failed", detail=f"{place}: {sent.note or sent.state}")

    def _resolve(self, target: str, origin: JobOrigin | None) -> list[Address]:
        if target == ALL:
            homes = [each for each in self._options.values() if each.home_chat_id]
            if not homes:
                raise HermesError("No platform has a home channel; use /sethome in a chat.")
            return [home_address(each) for each in homes]
        if target == ORIGIN:
            if origin is None:
                raise HermesError("The job was not created in a chat, so it has no origin.")
            return [
                Address(
                    platform=origin.platform, chat_id=origin.chat_id, thread_id=origin.thread_id
                )
            ]
        return [parse_target(target, self._options, self._directory)]

    def _has_home(self, address: Address) -> bool:
        options = self._options.get(address.platform)
        return options is not None and options.home_chat_id not in ("", address.chat_id)


def _attachment(path: Path) -> OutboundFile:
    mime = mimetypes.guess_type(path.name)[0] or ""
    return OutboundFile(
        kind=_KINDS.get(mime.partition("/")[0], "file"), path=str(path), name=path.name
    )


class DeliveryPorts:
    """Lets a platform that starts work itself send to chats of others (`GatewayPorts`)."""

    def __init__(self, delivery: JobDelivery, jobs: CronService) -> None:
        self._delivery = delivery
        self._jobs = jobs

    async def send(self, target: str, text: str, *, key: str) -> None:
        """Send Markdown to a target once for each key; raise PostRejected if that is impossible."""
        report = await self._delivery.deliver(target, text, key=key)
        if report.state != "delivered":
            raise PostRejected(report.detail)

    async def run_job(self, job: str, context: str, *, key: str) -> None:
        """Make a job due now; its run sees the text."""
        found = await self._jobs.find(job)
        request = RunRequest(key=key, source=key.partition(":")[0], text=context)
        await self._jobs.run_now(str(found["id"]), request=request)


class JobScheduler:
    """The scheduler as background work of the gateway."""

    name = "scheduler"

    def __init__(self, app: App, delivery: JobDelivery) -> None:
        self._scheduler, self._sessions = make_scheduler(app, delivery)

    async def run(self) -> None:
        await self._scheduler.run()

    async def drain(self, seconds: float) -> None:
        """Give running jobs this time to end; others continue in the next process."""
        await self._scheduler.drain(seconds)
        await self._sessions.close()
