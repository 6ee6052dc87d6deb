"""`disksla once`: sample for a short time and print the metrics."""

import argparse
import sys

from prometheus_client import ProcessCollector

from disksla.commands._context import prepare_sampler, with_ebs_readings
from disksla.commands._options import add_config_file, add_duration, add_paths
from disksla.serve.metrics import SnapshotCollector, make_registry
from disksla.serve.metrics.build_info import read_build_info
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline import Snapshot


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
    collector = SnapshotCollector(lambda: Snapshot(sampler.state), read_build_info)
    registry = make_registry(collector)
    ProcessCollector(registry=registry)
    sys.stdout.buffer.write(render_metrics(registry).body)
    sys.stdout.buffer.flush()
    return 0
