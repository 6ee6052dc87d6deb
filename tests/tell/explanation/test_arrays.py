"""What is said of the last minutes of an array, and on the pages of its disks."""

import re

from disksla.kernel.disks.layer import How, Layer
from disksla.serve.pages.disk_page import disk_page
from disksla.serve.pages.page import Frame
from disksla.serve.pages.status_page import status_page
from disksla.state.history import History
from disksla.state.pipeline import Snapshot
from disksla.tell.explanation import HistoryView, explain_array
from support.simulated_host import Machine, a_disk
from support.snapshots import ABOUT

SECONDS = 4


def sentences(how: How, **reads: int) -> list[str]:
    """Return the sentences of an array whose disks completed these reads a second, or hung."""
    layer = Layer(how, "RAID 0", tuple(reads))
    array = a_disk("md0", 9, slaves=tuple(reads), layer=layer)
    members = [a_disk(name, minor) for minor, name in enumerate(reads)]
    machine = Machine(*members, a_disk("vdz", 7), array)
    history = History()
    for _ in range(10 * SECONDS):
        for name, each in reads.items():
            machine.does(name, reads=each // 10, read_sectors=8 * each // 10, read_ms=each // 10)
            if not each:
                machine.does(name, inflight=1, busy_ms=100, queue_ms=100)
        history = history.after(machine.tick())
    snapshot, past = Snapshot(machine.state), HistoryView(history)
    [found] = snapshot.arrays
    frame = Frame("host", "1", "/metrics")
    of_member, of_other = (disk_page(snapshot, name, past, frame) for name in ("vda", "vdz"))
    of_all = status_page(snapshot, ABOUT, past, frame)
    said = explain_array(found, past)
    assert of_member is not None
    assert of_other is not None
    assert all(sentence in of_member and sentence in of_all for sentence in said)
    assert said[0] not in of_other
    return said


def test_uneven_load_of_a_stripe() -> None:
    made, promise, load = sentences("striped", vda=900, vdb=100)
    assert made == "It is on vda, vdb: RAID 0, striped over 2."
    assert promise == "What it is promised is not known: the limits of vda, vdb are not known."
    assert load.startswith("Its load is uneven: 90 % of the requests were on vda, one of 2 disks;")


def test_loads_that_are_no_problem() -> None:
    assert len(sentences("striped", vda=600, vdb=400)) == 2
    assert len(sentences("striped", vda=20, vdb=10)) == 2
    assert len(sentences("linear", vda=900, vdb=100)) == 2


def test_disk_that_makes_requests_wait() -> None:
    *_, waited = sentences("mirrored", vda=600, vdb=0)
    assert re.fullmatch(
        r"In the last [34]\.?\d* s, requests waited at its disks: vda 0 s, vdb [23]\.?\d* s\.",
        waited,
    )
