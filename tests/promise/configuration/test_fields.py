"""Field types of the configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_record
from disksla.promise.disk_entry import DiskMatch


def match_of(key: str, written: str) -> DiskMatch:
    return parse_record(f"{key}: {written}\n".encode(), "f", DiskMatch, {})


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("mountpoint", "/pgdata/", "/pgdata"),
        ("mountpoint", "//pg//data/./x/..", "/pg/data"),
        ("mountpoint", "/", "/"),
        ("by_id", "virtio-data", "virtio-data"),
        ("by_id", "/dev/disk/by-id/virtio-data", "virtio-data"),
        ("by_id", "/dev/disk/azure/scsi1/lun0", "disk/azure/scsi1/lun0"),
        ("by_id", "disk/by-path/pci-0", "disk/by-path/pci-0"),
        ("device", "/dev/mapper/vg-pg", "mapper/vg-pg"),
        ("device", "/dev/vg/pg", "vg/pg"),
    ],
)
def test_names_are_normalised(key: str, written: str, read: str) -> None:
    assert getattr(match_of(key, written), key) == read


@pytest.mark.parametrize(
    ("key", "written", "problem"),
    [
        ("mountpoint", "pgdata", "found 'pgdata'; expected a path that starts with /"),
        ("by_id", "/dev/vdb/x", "found '/dev/vdb/x'; expected a link such as virtio-data"),
        ("by_id", "disk/azure", "found 'disk/azure'; expected a link"),
        ("device", "/dev/disk/azure/lun0", "expected a kernel name .*use by_id"),
    ],
)
def test_other_names_are_errors(key: str, written: str, problem: str) -> None:
    with pytest.raises(DiskslaError, match=problem):
        match_of(key, written)


@given(st.lists(st.sampled_from(["a", ".", "", "b c"]), max_size=5))
def test_mount_point_is_normalised_once(parts: list[str]) -> None:
    once = match_of("mountpoint", f"'/{'/'.join(parts)}'").mountpoint
    assert match_of("mountpoint", f"'{once}'").mountpoint == once
