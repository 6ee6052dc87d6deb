"""A sampler for commands that look for a moment and end."""

import argparse
from collections.abc import Callable

from disksla.catalog import load_catalog
from disksla.commands.options import paths_of
from disksla.core.pipeline import State, Tick
from disksla.runtime.blockdevices import read_disks
from disksla.runtime.configuration import read_settings
from disksla.runtime.sampler import Sampler


def prepare_sampler(
    arguments: argparse.Namespace, on_tick: Callable[[Tick], None] = lambda _: None
) -> Sampler:
    """Read configuration and disks; raises Refusal if one of them cannot be read."""
    paths = paths_of(arguments)
    catalog = load_catalog()
    settings = read_settings(arguments.config_file, catalog)
    sampler = Sampler(paths, State(settings, catalog), on_tick)
    sampler.post(read_disks(paths).disks)
    return sampler
