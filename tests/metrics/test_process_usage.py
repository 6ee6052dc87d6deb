"""What this process uses, beside psutil and the client library."""

import resource

import psutil
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector

from disksla.metrics.process_usage import read_process_usage


def test_usage_is_that_of_psutil() -> None:
    process, before = psutil.Process(), read_process_usage()
    memory, times = process.memory_info(), process.cpu_times()
    after = read_process_usage()
    assert before is not None
    assert after is not None
    assert before.cpu_s - 0.02 <= times.user + times.system <= after.cpu_s + 0.02
    assert memory.rss == pytest.approx(before.resident_bytes, rel=0.2)
    assert memory.vms == pytest.approx(before.virtual_bytes, rel=0.2)


def test_usage_is_that_of_the_client_library() -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    usage = read_process_usage()
    assert usage is not None
    assert registry.get_sample_value("process_start_time_seconds") == usage.started_timestamp_s
    assert registry.get_sample_value("process_open_fds") == usage.open_fds
    assert registry.get_sample_value("process_max_fds") == usage.max_fds


def test_usage_is_unknown_without_free_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        usage = read_process_usage()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert usage is None
