"""What `discover` and `explain` look at: this machine's disks, held against the configuration."""

import argparse
import sys

import msgspec

from disksla.catalog import load_catalog
from disksla.commands.options import add_config_file, add_paths, paths_of
from disksla.core.disk import Disk
from disksla.core.matching import assign, entry_for, why_unwatched
from disksla.core.refusal import Refusal
from disksla.core.settings import DiskEntry, Settings
from disksla.core.terms import Catalog
from disksla.core.view import Assignment
from disksla.core.visible import visible
from disksla.runtime.blockdevices import read_disks
from disksla.runtime.configuration import read_settings


class Machine(msgspec.Struct, frozen=True):
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
        raise Refusal(f"no disk is called '{device}'; there are: {known}")

    def why_unwatched(self, disk: Disk) -> str | None:
        """Say in a few words why a disk is not watched, or None if it is."""
        return why_unwatched(disk, self.settings)

    def assignment(self, disk: Disk) -> Assignment:
        """Give the terms a disk is held against, or would be."""
        return assign(disk, self.settings, self.catalog)

    def entry(self, disk: Disk) -> DiskEntry | None:
        """Give what the configuration says of a disk; None if it says nothing."""
        found = entry_for(disk, self.settings)
        return None if found is None else found[1]


def add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config.file and --path.*."""
    add_config_file(parser)
    add_paths(parser)


def read_machine(arguments: argparse.Namespace) -> Machine:
    """Read configuration and devices; what could not be understood of them goes to stderr."""
    catalog = load_catalog()
    settings = read_settings(arguments.config_file, catalog)
    inventory = read_disks(paths_of(arguments))
    for problem in inventory.problems:
        print(f"disksla: {visible(problem)}", file=sys.stderr)
    return Machine(inventory.disks, settings, catalog)
