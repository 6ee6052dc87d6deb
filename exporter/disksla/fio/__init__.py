"""Run fio safely: its job, its result, its limits, and where it may write."""

from disksla.fio.busy import (
    BENCHMARK_MAX_UTILIZATION,
    PROBE_MAX_QUEUE_DEPTH,
    VERIFY_MAX_OTHER_LOAD,
    activity_between,
    work_of,
)
from disksla.fio.job import FioJob, Pattern, fio_arguments
from disksla.fio.raw_device_rules import writable_region
from disksla.fio.result import (
    NOTHING,
    DirectionResult,
    FailureReason,
    FioError,
    FioResult,
    add_up,
    done_within,
    parse_fio,
    parse_fio_version,
)
from disksla.fio.scratch_file_rules import ScratchFileError, check_mount, mounts_for_files
