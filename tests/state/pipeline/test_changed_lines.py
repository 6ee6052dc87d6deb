"""Lines of /proc/diskstats that changed, and the disks that they belong to."""

import pytest

from disksla.state.pipeline.changed_lines import index_lines
from support.simulated_host import a_disk

DISKS = (a_disk("vda"), a_disk("vdb", 16))
PARTITIONS = {"vda1": "vda"}


def line(name: str, minor: int, reads: int = 0) -> str:
    return f" 254 {minor:7} {name} {reads} 0 0 0 0 0 0 0 0 0 0\n"


VDA, VDA1, VDB = line("vda", 0), line("vda1", 1), line("vdb", 16)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (VDA + VDA1 + VDB, set()),
        (VDA + VDA1 + line("vdb", 16, 9), {"vdb"}),
        (VDA + line("vda1", 1, 9) + VDB, {"vda"}),
        (line("vda", 0, 9) + VDA1 + line("vdb", 16, 9), {"vda", "vdb"}),
    ],
)
def test_changed_lines_are_those_of_the_disks(text: str, changed: set[str]) -> None:
    compared = index_lines(VDA + VDA1 + VDB, DISKS, PARTITIONS).compare(text)
    assert compared is not None
    after, found = compared
    assert found == changed
    assert after.text == text
    assert after.lines_of("vda") == text.splitlines()[:2]


@pytest.mark.parametrize(
    "text",
    [VDA + VDA1, VDA + VDB + VDA1, VDA + VDA1 + line("vdc", 16), VDA + VDA1 + line("vdb", 32)],
    ids=["fewer", "another order", "another name", "another number"],
)
def test_lines_of_other_devices_cannot_be_compared(text: str) -> None:
    assert index_lines(VDA + VDA1 + VDB, DISKS, PARTITIONS).compare(text) is None
