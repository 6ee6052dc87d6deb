"""`disksla once`: sample for a short time and print the metrics."""

import argparse
import sys

from disksla.commands._context import prepare_sampler, with_ebs_readings
from disksla.commands._options import add_config_file, add_duration, add_paths
from disksla.metrics import page_families
from disksla.metrics.build_info import read_build_info
from disksla.metrics.process_usage import read_process_usage
from disksla.metrics.render import render_metrics
from disksla.pipeline import take_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_duration(parser, "2s", "duration of sampling (default: %(default)s)")
    add_config_file(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample, then print the metrics in the text format."""
    sampler = prepare_sampler(arguments)
    with with_ebs_readings(sampler):
        sampler.run_for(arguments.duration_s)
    families = page_families(take_snapshot(sampler.state), read_build_info(), read_process_usage())
    sys.stdout.buffer.write(render_metrics(families).body)
    sys.stdout.buffer.flush()
    return 0
