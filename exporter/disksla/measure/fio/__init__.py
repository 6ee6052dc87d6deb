"""Run fio safely: its job, its result, its limits, and where it may write."""

from disksla.measure.fio.job import FioJob, Pattern, fio_arguments
from disksla.measure.fio.raw_device_rules import writable_region
from disksla.measure.fio.result import (
    NOTHING,
    DirectionResult,
    FioError,
    FioResult,
    done_within,
    parse_fio,
    parse_fio_version,
    total_result,
)
from disksla.measure.fio.scratch_file_rules import ScratchFileError, check_mount, mounts_for_files
