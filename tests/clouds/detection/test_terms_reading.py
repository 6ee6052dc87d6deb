"""The daemon reads what `disksla detect` writes."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.detection import encode_terms_file, terms_file
from disksla.clouds.detection.findings import CloudDisk, Detected, DetectionProblem, Listing
from support.machine_facts import terms_file as read_file
from support.simulated_host import CATALOG

NOW = dt.datetime(2026, 11, 23, 1, 2, 3, tzinfo=dt.UTC)
NAMES = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,30}", fullmatch=True)
DISKS = st.builds(
    CloudDisk,
    volume=NAMES,
    api_type=NAMES,
    size_bytes=st.none() | st.integers(1, 2**50),
    iops=st.none() | st.integers(1, 10**6),
    bytes_per_second=st.none() | st.integers(1, 2**40),
    caching=st.sampled_from([None, "none", "read-only", "read-write"]),
    options=st.dictionaries(NAMES, NAMES, max_size=2),
)
PROBLEMS = st.builds(
    DetectionProblem,
    source=st.sampled_from(["api", "metadata"]),
    reason=st.sampled_from(["denied", "timeout", "no_credentials"]),
    message=st.sampled_from(["it failed: why; hint: 'x' \"y\" # z", "a: b"]),
)


@given(
    disks=st.lists(DISKS, max_size=4),
    problems=st.lists(PROBLEMS, max_size=2),
    machine=st.none() | NAMES,
)
def test_what_was_found_out_is_read(
    disks: list[CloudDisk], problems: list[DetectionProblem], machine: str | None
) -> None:
    listing = Listing(tuple(disks))
    detected = Detected("aws", "EC2", machine, None, listing, tuple(problems))
    written = encode_terms_file(terms_file(detected, None, NOW))
    file = read_file(written.decode())
    assert (file.source, file.origin, file.machine.type) == ("api", "EC2 API", machine)
    assert file.as_of_timestamp_s == NOW.timestamp()
    assert file.expiry_timestamp_s == NOW.timestamp() + 7200
    assert [problem.message for problem in file.problems] == [each.message for each in problems]
    for disk, (_, entry) in zip(disks, file.entries(), strict=True):
        row = CATALOG.find(f"aws.{disk.api_type}")
        assert entry.match.volume == disk.volume
        assert entry.terms == (f"aws.{disk.api_type}" if row is None else row.id)
        assert entry.size_bytes() == disk.size_bytes
        assert entry.iops == disk.iops
        assert entry.bytes_per_second == disk.bytes_per_second
        assert (entry.caching, dict(entry.options)) == (disk.caching, disk.options)


def test_attempt_that_found_nothing_has_no_age() -> None:
    problem = DetectionProblem("metadata", "timeout", "it failed: why; hint")
    detected = Detected("aws", "EC2", problems=(problem,))
    written = encode_terms_file(terms_file(detected, None, NOW))
    file = read_file(written.decode())
    assert (file.as_of_timestamp_s, file.expiry_timestamp_s) == (None, None)
    assert file.tried_timestamp_s == NOW.timestamp()
