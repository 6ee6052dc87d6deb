"""Results as a section of a document."""

from collections.abc import Iterable, Sequence

from lab.table import HEADINGS, cells
from vm.verdict import Judged

HEADING = "## In a virtual machine, under QEMU's limiter"
_INTRODUCTION = """
The limiter of the lab is our own. `make vm` compares verdicts with one that is not: QEMU, which
many clouds use, throttles disks by leaky buckets. It boots Debian 12 in QEMU (software emulation),
installs the Debian package in it, and loads virtio-blk disks with fio or PostgreSQL 15. Each disk
is plugged in for its scenario, and the daemon finds its terms by its serial number.

QEMU's trace has, for each request, when it arrived at the limiter, when the limiter admitted it,
and when it was complete. In truth, a disk is throttled while at least one request waits to be
admitted. The level of QEMU's bucket follows from the admitted requests. The clocks of the host and
of the virtual machine are matched by the bytes that both have counted; 95 % of the ticks agree
within {clock_ms:.0f} ms in each scenario.

The columns are those of the lab. Required are: throttled seconds within 25 % of the truth where
there are terms, and not more than the truth and 2 % of the time elsewhere; the
right limit, except in two windows; a ceiling within 1 %; bounds of credits that contain the truth
at every tick. The same is required of the metrics that the daemon in the virtual machine serves.
As installed, a helper lets the daemon count data writes exactly, and so does `disksla record`.
Its recordings are judged without these counts, as of a daemon without the helper, and must meet
the requirements with them, too.
`below-promise`, `counted-as-four` and the last part of `lowered` are throttled at a rate that the
terms do not explain, so the limit must be unknown. Limits are random, but follow from a seed. They
are low, because the emulation needs milliseconds for a request: they must bound the load, not it.

In `machine-*`, two or three disks are in one throttle group of QEMU, whose limits are written out
in the configuration of disksla as those of the machine; the row `all` compares the metrics of the
machine with the time in which a request of any disk waited. `machine-apart` and
`machine-apart-low` are the control: each disk has a limit of its own, and the machine must not be
named. The quiet disk of `machine-noisy` and `machine-quiet` waits for a few milliseconds for
each of its requests; of it, 5 % of the time under load may be wrong in the latter. As said above,
samples cannot tell it from a slow disk if it is never seen while the machine has little load, so
that the former is `open`.

The ceiling is not required of `pgbench-8`: its clients flush together, and only a range of the
number of data writes is known.

    make vm ARGS='--report FILE'

writes the next table: here with QEMU {qemu}, Linux {kernel} in the virtual machine, and seed
{seeds}. Below it are the requirements that were not met, if any, and for how long the hypervisor
of the host took its CPUs meanwhile (steal).

{heads}
|:--|:--|{right}:--|
"""
_HEADS = ("scenario", "load and limit", *HEADINGS[1:])


def report(document: str, judged: Sequence[Judged]) -> str:
    """Return a document in which the section of this report is replaced, or added at the end."""
    before, _, old = document.partition(HEADING)
    _, later, rest = old.partition("\n## ")
    before = before.rstrip("\n")
    return "".join([f"{before}\n\n" if before else "", section(judged), later, rest])


def section(judged: Sequence[Judged]) -> str:
    """Return the section: how it was measured, the results, and the requirements not met."""
    introduction = _INTRODUCTION.format(
        qemu=_listed(result.results.qemu for result in judged),
        kernel=_listed(result.kernel.partition("-")[0] for result in judged),
        seeds=_listed(str(result.results.seed) for result in judged),
        clock_ms=1e3 * max((result.clock_error_s for result in judged), default=0.0),
        heads=f"| {' | '.join(_HEADS)} |",
        right="--:|" * (len(_HEADS) - 3),
    )
    rows = []
    for result in judged:
        results = (result.verdict.name, result.caption, *cells(result.verdict))
        rows.append(f"| {' | '.join(results)} |\n")
    problems = [
        f"- `{verdict.name}`: {'; '.join(verdict.problems)} (steal: {verdict.steal_s:.1f} s)\n"
        for verdict in (result.verdict for result in judged)
        if verdict.problems
    ]
    return "".join([HEADING, "\n", introduction, *rows, *(["\n"] if problems else []), *problems])


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))
