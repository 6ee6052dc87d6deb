"""The situations in which the pages are tested: what the disks do, and how they are configured."""

from dataclasses import replace
from typing import NamedTuple

from browser.machine import SimulatedDisk
from support.scenarios import SCENARIOS

_SECONDS = 60.0
"""Disks repeat what they do after this time."""
HOSTILE = "<script>alert(1)</script>\"'&\u202egnp<b>"


def _disk(name: str, scenario: str, serial: str = "", mount_point: str = "") -> SimulatedDisk:
    simulation = replace(SCENARIOS[scenario], seconds=_SECONDS)
    return SimulatedDisk(name, simulation, serial, mount_point)


class Situation(NamedTuple):
    """Disks and their configuration, as YAML."""

    disks: tuple[SimulatedDisk, ...]
    configuration: str = ""
    reload: str | None = None
    """A configuration that is reloaded later."""
    shows: str = "You: throttled at the limit you bought"
    """What its status page has after some seconds."""


_BUSY = """
disks:
  - match: {serial: vol-flush}
    terms: {budget: sum, iops: 300, bandwidth: 60MB}
  - match: {serial: vol-burst}
    terms: {budget: sum, iops: 300, burst: {iops: 2000, iops_credits: 30000}}
  - match: {serial: vol-below}
    terms: {budget: sum, iops: 1000}
  - match: {serial: vol-stalled}
    terms: {budget: separate, read_iops: 10000, write_iops: 5000, latency: 1ms}
  - match: {serial: vol-nowhere}
    terms: aws.gp3
"""
_GROUP = """
disks:
  - match: {serial: vol-one}
    terms: aws.gp3
  - match: {serial: vol-two}
    terms: aws.io2
    iops: 2000
machine:
  limits:
    budget: sum
    iops: 600
    burst: {iops: 2000, iops_credits: 60000}
"""

SITUATIONS = {
    "no-disks": Situation((), shows="No disk is monitored"),
    "idle": Situation(
        (SimulatedDisk("vda", serial="vol-a", mount_point="/"),),
        """
disks:
  - match: {serial: vol-a}
    terms: yandex.network-ssd
""",
        shows="</i>Idle<",
    ),
    "busy": Situation(
        (
            _disk("vda", "steady-90-bandwidth", mount_point="/"),
            _disk(
                "vdb", "iops-300-synchronous", "vol-flush", mount_point="/var/lib/postgresql"
            )._replace(flushes=True),
            _disk("vdc", "burst-in-turns", "vol-burst", mount_point="/srv/" + 60 * "long-name-"),
            _disk("vdd", "below-60-of-100", "vol-below", "/" + HOSTILE)._replace(model=HOSTILE),
            _disk("vde", "unlimited-stalled", "vol-stalled"),
            _disk("vdf", "iops-470-deep", "s" * 90),
        ),
        _BUSY,
        "disks: nothing\n",
    ),
    "machine": Situation(
        (
            _disk("nvme1n1", "iops-300-deep", "vol-one"),
            _disk("nvme2n1", "iops-300-deep", "vol-two"),
        ),
        _GROUP,
        shows="The machine: throttled at its limit",
    ),
    "many": Situation(
        tuple(
            _disk(f"sd{number}", "iops-300-deep", "vol-slow", mount_point="/data/37")
            if number == 37
            else _disk(f"sd{number}", "steady-90", f"vol-{number}", mount_point=f"/data/{number}")
            if number % 4 == 0
            else SimulatedDisk(f"sd{number}", None, f"vol-{number}", mount_point=f"/data/{number}")
            for number in range(64)
        ),
        "disks:\n"
        + "".join(
            f"  - {{match: {{serial: {serial}}}, terms: {{budget: sum, iops: 300}}}}\n"
            for serial in ("vol-slow", *(f"vol-{number}" for number in range(64) if number != 37))
        ),
    ),
}
