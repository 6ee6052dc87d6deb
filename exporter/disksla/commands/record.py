"""`disksla record FILE`: write the ticks of this machine to a file."""

import argparse
import contextlib
import gzip
import sys
from pathlib import Path
from typing import BinaryIO, cast

from disksla.base.errors import DiskslaError
from disksla.commands._context import prepare_sampler, with_ebs_readings
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file, add_duration, add_paths, roots_of
from disksla.kernel.disks.hotplug import DiskWatcher
from disksla.promise.configuration.settings_file import read_text
from disksla.serve.metrics.render import read_build_info
from disksla.state.pipeline import Tick
from disksla.state.pipeline.tick import FORMAT, RecordingHeader, encode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    file = "file to create; it must not exist; compressed if the name ends in .gz"
    add_options(parser, f"FILE  {file}")
    add_duration(parser, "10s", "duration of the recording (default: %(default)s)")
    add_config_file(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Record until the duration is over, until Ctrl-C, or until a write fails."""
    file: Path = arguments.file
    failure: OSError | None = None

    def write(record: RecordingHeader | Tick) -> None:
        nonlocal failure
        try:
            output.write(encode(record))
        except OSError as error:
            failure = error
            sampler.stop()

    sampler = prepare_sampler(arguments, write)
    build_info = read_build_info()
    interval_s = sampler.state.settings.sampling.interval_s
    with _create(file) as output:
        write(
            RecordingHeader(
                recording=FORMAT,
                interval_s=interval_s,
                kernel=build_info.kernel_release,
                disksla=build_info.version,
                terms_files=sampler.state.configuration.terms_files,
                configuration=read_text(arguments.config_file),
            )
        )
        watcher = DiskWatcher(roots_of(arguments), sampler.post)
        sampler.on_unknown_device = watcher.rescan
        watcher.start()
        with contextlib.suppress(KeyboardInterrupt), with_ebs_readings(sampler):
            sampler.run_for(arguments.duration_s)
        watcher.stop()
    if failure is not None:
        raise DiskslaError(f"cannot write {file}: {failure.strerror}; the recording is incomplete")
    state = sampler.state
    print(
        f"recorded {state.sampler_stats.ticks} ticks of {len(state.inventory)} block devices"
        f" ({len(state.monitored)} monitored) to {file}",
        file=sys.stderr,
    )
    return 0


def _create(path: Path) -> BinaryIO:
    try:
        if path.suffix == ".gz":
            return cast("BinaryIO", gzip.open(path, "xb"))
        return path.open("xb")
    except FileExistsError:
        raise DiskslaError(f"{path} already exists; choose another name") from None
    except OSError as error:
        raise DiskslaError(f"cannot create {path}: {error.strerror}") from None
