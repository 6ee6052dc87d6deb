"""The limit of the machine over a disk."""

from disksla.config.custom_terms import SumTerms
from disksla.config.settings import DiskEntry, DiskMatch, MachineSettings, Settings
from disksla.history.machine_limit import machine_limit
from support.simulated_host import Machine, a_disk

DISKS = (a_disk("vda"), a_disk("vdb", 16))
ENTRIES = tuple(
    DiskEntry(match=DiskMatch(device=name), terms="gcp.pd-balanced") for name in ("vda", "vdb")
)


def test_limits_of_a_type_are_not_those_of_the_machine() -> None:
    """Two Persistent Disks share the limits of their total size, and no machine is configured."""
    machine = Machine(*DISKS, settings=Settings(disks=ENTRIES))
    assert list(machine.state.groups) == ["gcp.pd-balanced"]
    assert machine_limit(machine.state, "vda") is None


def test_limits_that_are_written_out_have_no_larger_machine() -> None:
    limits = MachineSettings(limits=SumTerms(iops=900.0))
    machine = Machine(*DISKS, settings=Settings(disks=ENTRIES, machine=limits))
    found = machine_limit(machine.state, "vda")
    assert found is not None
    assert (found.shared.limits.rates.read_iops, found.larger) == (900.0, {})
