"""What commands start from: the disks of this host, the configuration and the catalogue."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import cached_property

import msgspec

from disksla.commands._options import add_config_file, add_paths, roots_of
from disksla.config import (
    DiskEntry,
    Settings,
    assign,
    assign_all,
    find_entry,
    machine_limits,
    why_not_monitored,
)
from disksla.config.settings_file import read_configuration
from disksla.disks import Disk
from disksla.disks.inventory import read_disks
from disksla.errors import DiskslaError
from disksla.limits import Assignment, Catalog, MachineChoice, SharedLimits
from disksla.pipeline import State, Tick
from disksla.pipeline.sampler import Sampler
from disksla.text import escape_control


class HostContext(msgspec.Struct, frozen=True, dict=True):
    """All block devices of the host, the settings, and the catalogue of disk types."""

    disks: tuple[Disk, ...]
    settings: Settings
    catalog: Catalog
    machines: tuple[MachineChoice, ...] = ()

    def find(self, device: str) -> Disk:
        """Return the disk of a kernel name or a /dev/disk/by-id name, with or without directory.

        Raises DiskslaError, which lists all disks, if no disk has that name.
        """
        name = device.removeprefix("/dev/").removeprefix("disk/by-id/")
        for disk in self.disks:
            if name == disk.name or name in disk.by_id:
                return disk
        names = ", ".join(disk.name for disk in self.disks) or "(no disks found)"
        raise DiskslaError(f"no disk named '{device}'; expected one of: {names}")

    def why_not_monitored(self, disk: Disk) -> str | None:
        """Return in a few words why a disk is not monitored, or None if it is."""
        return why_not_monitored(disk, self.settings)

    def assignment(self, disk: Disk) -> Assignment:
        """Return the terms of a disk and its limits, whether or not it is monitored."""
        return self._monitored.get(disk.name) or assign(disk, self.settings, self.catalog)

    @cached_property
    def _monitored(self) -> dict[str, Assignment]:
        return assign_all(self.disks, self.settings, self.catalog)

    def machine_limits(self, assignment: Assignment) -> tuple[SharedLimits, ...]:
        """Return the limits of this machine over a disk and others."""
        limits = machine_limits(self.settings, self.machines, os.cpu_count())
        return tuple(each for each in limits if each.covers_terms(assignment.terms))

    def entry(self, disk: Disk) -> DiskEntry | None:
        """Return the configuration entry that matches a disk, or None."""
        found = find_entry(disk, self.settings)
        return None if found is None else found[1]


def add_context_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config.file and --path.*."""
    add_config_file(parser)
    add_paths(parser)


def read_context(arguments: argparse.Namespace) -> HostContext:
    """Read configuration and devices; print problems with devices to standard error.

    Raises DiskslaError if the configuration or the list of devices cannot be read.
    """
    configuration = read_configuration(arguments.config_file)
    inventory = read_disks(roots_of(arguments))
    for problem in inventory.problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)
    return HostContext(
        inventory.disks, configuration.settings, configuration.catalog, configuration.machines
    )


def prepare_sampler(
    arguments: argparse.Namespace, on_tick: Callable[[Tick], None] = lambda _: None
) -> Sampler:
    """Return a sampler for the disks and the configuration of this host.

    Raises DiskslaError if one of them cannot be read.
    """
    roots = roots_of(arguments)
    configuration = read_configuration(arguments.config_file)
    state = State(configuration.settings, configuration.catalog, machines=configuration.machines)
    sampler = Sampler(roots, state, on_tick)
    sampler.post(read_disks(roots).disks)
    return sampler
