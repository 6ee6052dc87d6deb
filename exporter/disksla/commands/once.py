"""`disksla once`: sample for a moment and print the metrics."""

import argparse
import sys

from disksla.commands.options import add_config_file, add_duration, add_paths
from disksla.commands.sampling import prepare_sampler
from disksla.core.look import look
from disksla.exposition.collector import make_registry
from disksla.exposition.scrape import print_metrics
from disksla.runtime.about import read_about


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_duration(parser, "2s", "how long to sample (default: %(default)s)")
    add_config_file(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample, then print in the text format."""
    sampler = prepare_sampler(arguments)
    sampler.run_for(arguments.duration_s)
    about = read_about()
    registry = make_registry(lambda: look(sampler.state), lambda: about)
    sys.stdout.buffer.write(print_metrics(registry).body)
    sys.stdout.buffer.flush()
    return 0
