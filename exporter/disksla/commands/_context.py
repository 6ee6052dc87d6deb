"""What commands start from: the disks of this host, the configuration and the catalogue."""

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import FrameType

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.text import escape_control
from disksla.clouds.ebs_statistics.client import EbsClient
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file, add_paths, roots_of
from disksla.kernel.disks import Disk
from disksla.kernel.disks.inventory import read_disks
from disksla.kernel.nfs import is_of_network
from disksla.kernel.procfs import Mount
from disksla.promise.catalogue import Assignment, Catalog, SharedLimits
from disksla.promise.configuration import (
    Configuration,
    DiskEntry,
    Settings,
    assign,
    assign_all,
    find_array,
    find_disk,
    find_terms,
    is_below,
    is_shared_by,
    machine_limits,
    why_not_monitored,
    with_kubernetes_volumes,
)
from disksla.promise.configuration.terms_directory import read_with_terms
from disksla.state.pipeline import State, Tick
from disksla.state.pipeline.sampler import Sampler

_SHARED = "a measurement would use what all clients of the storage share"


class HostContext(msgspec.Struct, frozen=True, dict=True):
    """All block devices of the host, and what is configured and said of them."""

    disks: tuple[Disk, ...]
    configuration: Configuration
    mounts: tuple[Mount, ...] = ()
    """The mount table; empty if it is not known, as of a recording."""
    is_this_machine: bool = False
    """Paths are those of this process, so that symbolic links can be resolved."""

    @property
    def settings(self) -> Settings:
        """What the configuration file says."""
        return self.configuration.settings

    @property
    def catalog(self) -> Catalog:
        """All disk types, with the operator's rows."""
        return self.configuration.catalog

    def find(self, name: str) -> Disk:
        """Return the disk that a name means, as `find_disk`. Raise DiskslaError."""
        return find_disk(self._resolved(name), self.disks, self.mounts)

    def find_array(self, name: str) -> tuple[Disk, tuple[Disk, ...]] | None:
        """Return the array that a name means and its disks, as `find_array`."""
        return find_array(self._resolved(name), self.disks, self.mounts)

    def _resolved(self, name: str) -> str:
        """Return a name without symbolic links. Raise DiskslaError if there is no such file."""
        # To look at a file of a mount may wait for its server without end.
        of_network = (mount.mount_point for mount in self.mounts if is_of_network(mount))
        is_mount = any(is_below(name, point) for point in of_network)
        if self.is_this_machine and name.startswith("/") and not is_mount:
            with contextlib.suppress(OSError):  # a link in /dev of a disk that udev does not know
                name = os.path.realpath(name, strict=True)
            if not name.startswith("/dev/") and not os.path.lexists(name):
                raise DiskslaError(f"no disk found for {name}: No such file or directory")
        return name

    def find_block_device(self, name: str, why: str = _SHARED) -> Disk:
        """Return the block device that a name means, as `find`.

        Raise DiskslaError for a mount, and for a further path of a disk: what is known of its use
        is known of the disk.
        """
        disk = self.find(name)
        if disk.path_of is not None:
            raise DiskslaError(
                f"found {disk.name}, a path of {disk.path_of}; expected the disk: {disk.path_of}"
            )
        if disk.is_mount:
            raise DiskslaError(f"found {disk.name}, an NFS mount; expected a block device: {why}")
        return disk

    def why_not_monitored(self, disk: Disk) -> str | None:
        """Return in a few words why a disk is not monitored, or None if it is."""
        return why_not_monitored(disk, self.settings)

    def assignment(self, disk: Disk) -> Assignment:
        """Return the terms of a disk and its limits, whether or not it is monitored."""
        files = self.configuration.terms_files
        return self._monitored.get(disk.name) or assign(disk, self.settings, self.catalog, files)

    @cached_property
    def _monitored(self) -> dict[str, Assignment]:
        files = self.configuration.terms_files
        return assign_all(self.disks, self.settings, self.catalog, files).monitored

    def machine_limits(self, disk: Disk) -> tuple[SharedLimits, ...]:
        """Return the limits of this machine over a disk and others."""
        assignment = self.assignment(disk)
        limits = machine_limits(self.settings, self.configuration.machines, os.cpu_count())
        return tuple(
            each for each in limits if is_shared_by(each, disk, assignment, self.settings)
        )

    def entry(self, disk: Disk) -> DiskEntry | None:
        """Return the entry that applies to a disk, or None."""
        found = find_terms(disk, self.settings, self.configuration.terms_files)
        return None if found is None else found.entry


def add_context_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config.file and --path.*."""
    add_config_file(parser)
    add_paths(parser)


def read_context(arguments: argparse.Namespace) -> HostContext:
    """Read configuration, terms files and devices; print their problems to standard error.

    Raises DiskslaError if the configuration or the list of devices cannot be read.
    """
    configuration = read_all(arguments)
    roots = roots_of(arguments)
    inventory = read_disks(roots)
    for problem in inventory.problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)
    disks = with_kubernetes_volumes(inventory.disks, configuration.terms_files)
    is_this_machine = (roots.procfs, roots.sysfs) == (Roots().procfs, Roots().sysfs)
    return HostContext(disks, configuration, inventory.mounts, is_this_machine)


def recorded_context(state: State) -> HostContext:
    """Return the block devices of a recording, after its last tick, with its configuration."""
    configuration = state.configuration
    disks = with_kubernetes_volumes(state.inventory, configuration.terms_files)
    return HostContext(disks, configuration)


_DEVICE_HELP = (
    "disk: vdb, a link in /dev, a mount point or a path on it, a logical volume, the id of the"
    " volume, or NAMESPACE/CLAIM"
)


def add_device(container: argparse._ActionsContainer, else_help: str | None = None) -> None:
    """Add DEVICE, which `HostContext.find` reads; it is optional if it may be something else."""
    optional = "" if else_help is None else "?"
    add_options(container, f"DEVICE{optional}  {_DEVICE_HELP}{else_help or ''}")


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Add any number of DEVICE, as `add_device`."""
    add_options(parser, f"DEVICE*  {_DEVICE_HELP}")


def read_all(arguments: argparse.Namespace) -> Configuration:
    """Read the configuration and terms files; print problems of the latter to standard error.

    Raise DiskslaError if the configuration is invalid.
    """
    configuration, problems = read_with_terms(arguments.config_file)
    for problem in problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)
    return configuration


def prepare_sampler(
    arguments: argparse.Namespace,
    on_tick: Callable[[Tick], None] = lambda _: None,
    configuration: Configuration | None = None,
) -> Sampler:
    """Return a sampler for the disks and the configuration of this host, read if it is not given.

    Raises DiskslaError if one of them cannot be read.
    """
    roots = roots_of(arguments)
    sampler = Sampler(roots, State(configuration or read_all(arguments)), on_tick)
    sampler.post(read_disks(roots).disks)
    return sampler


@contextlib.contextmanager
def with_ebs_readings(sampler: Sampler) -> Iterator[None]:
    """Post to a sampler what the helper of `disksla ebs-statistics` reads, if it runs."""
    client = EbsClient(Path(sampler.state.settings.ebs.socket), sampler.post)
    client.start()
    try:
        yield
    finally:
        client.stop()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Records the signal that stops the command."""

    def __init__(self) -> None:
        """Start without a signal."""
        self.stop = threading.Event()
        """Set when a signal arrives."""
        self.by: int | None = None
        """Number of the signal; None before it arrives."""

    def take(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.by = signal_number
        self.stop.set()


@contextlib.contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Handle SIGINT, SIGTERM and SIGHUP until the block ends, then restore their handlers."""
    interrupted = StopRequest()
    before = {number: signal.signal(number, interrupted.take) for number in _SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
