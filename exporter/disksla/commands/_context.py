"""What `discover` and `explain` look at: this machine's disks, held against the configuration."""

import argparse
import sys
from collections.abc import Callable

import msgspec

from disksla.commands._options import add_config_file, add_paths, roots_of
from disksla.config import DiskEntry, Settings, assign, find_entry, why_unwatched
from disksla.config.settings_file import read_configuration
from disksla.disks import Disk
from disksla.disks.inventory import read_disks
from disksla.errors import DiskslaError
from disksla.limits import Assignment, Catalog
from disksla.pipeline import State, Tick
from disksla.pipeline.sampler import Sampler
from disksla.text import escape_control


class HostContext(msgspec.Struct, frozen=True):
    """All block devices, and what decides over them."""

    disks: tuple[Disk, ...]
    settings: Settings
    catalog: Catalog

    def find(self, device: str) -> Disk:
        """Give the disk of a kernel name or one under /dev/disk/by-id, with or without directory.

        Raises Refusal, with the disks there are, if none has that name.
        """
        name = device.removeprefix("/dev/").removeprefix("disk/by-id/")
        for disk in self.disks:
            if name == disk.name or name in disk.by_id:
                return disk
        known = ", ".join(disk.name for disk in self.disks) or "none at all"
        raise DiskslaError(f"no disk is called '{device}'; there are: {known}")

    def why_unwatched(self, disk: Disk) -> str | None:
        """Say in a few words why a disk is not watched, or None if it is."""
        return why_unwatched(disk, self.settings)

    def assignment(self, disk: Disk) -> Assignment:
        """Give the terms a disk is held against, or would be."""
        return assign(disk, self.settings, self.catalog)

    def entry(self, disk: Disk) -> DiskEntry | None:
        """Give what the configuration says of a disk; None if it says nothing."""
        found = find_entry(disk, self.settings)
        return None if found is None else found[1]


def add_context_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config.file and --path.*."""
    add_config_file(parser)
    add_paths(parser)


def read_context(arguments: argparse.Namespace) -> HostContext:
    """Read configuration and devices; what could not be understood of them goes to stderr."""
    configuration = read_configuration(arguments.config_file)
    inventory = read_disks(roots_of(arguments))
    for problem in inventory.problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)
    return HostContext(inventory.disks, configuration.settings, configuration.catalog)


def prepare_sampler(
    arguments: argparse.Namespace, on_tick: Callable[[Tick], None] = lambda _: None
) -> Sampler:
    """Read configuration and disks; raises Refusal if one of them cannot be read."""
    paths = roots_of(arguments)
    configuration = read_configuration(arguments.config_file)
    sampler = Sampler(paths, State(configuration.settings, configuration.catalog), on_tick)
    sampler.post(read_disks(paths).disks)
    return sampler
