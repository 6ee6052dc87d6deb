"""The limit of the machine over a disk."""

from disksla.config.custom_terms import SumTerms
from disksla.config.settings import DiskEntry, DiskMatch, MachineSettings, Settings
from disksla.history.machine_limit import machine_limit
from disksla.history.sentences import LargerMachine
from disksla.limits.machine import MachineChoice, find_machine
from disksla.limits.machine_tables import load_machine_rules, read_table
from support.simulated_host import Machine, a_disk, reconfigured

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


def test_larger_machines_are_looked_up_once_for_all_disks_and_pages() -> None:
    rules = load_machine_rules("aws")
    assert rules is not None
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms="aws.gp3") for name in ("vda", "vdb")
    )
    machine = Machine(*DISKS, settings=Settings(disks=entries))

    def with_type(name: str) -> None:
        choice = MachineChoice(rules, find_machine(rules, read_table(rules), name))
        machine.state = reconfigured(machine.state, machine.state.settings, (choice,))

    with_type("m6i.large")
    first, second = (machine_limit(machine.state, name) for name in ("vda", "vdb"))
    assert first is not None
    assert second is not None
    assert first.larger["iops"] == LargerMachine("m6i.xlarge", 6000.0)
    assert second.larger is first.larger
    with_type("m6i.xlarge")
    other = machine_limit(machine.state, "vda")
    assert other is not None
    assert other.larger["iops"].name == "m6i.2xlarge"
