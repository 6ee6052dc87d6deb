"""What to do next about a disk: the command, or where to look."""

from collections.abc import Iterable

from disksla.promise.catalogue import Assignment
from disksla.tell.explanation.condition import ConditionSeconds, problems_of

_EVIDENCE = "disksla record slow.jsonl.gz --for 60s keeps the evidence"


def next_step(device: str, assignment: Assignment, seconds: ConditionSeconds) -> str | None:
    """Return a sentence for the worst problem of a period; None without a problem."""
    step = None
    match next(iter(problems_of(seconds)), None):
        case "stalled":
            step = (
                f"look for errors of {device} in the kernel log (journalctl --dmesg), and ask the"
                f" provider; {_EVIDENCE}"
            )
        case "below":
            step = (
                "disksla report writes the proof for a ticket, from the series in Prometheus;"
                f" {_EVIDENCE} while it lasts"
            )
        case "slow":
            step = (
                f"disksla verify {device} --latency says whether it is slow without load, too, and"
                " the kernel log (journalctl --dmesg) whether it had errors; then ask the provider"
            )
        case "your_limit" | "no_credits" | "machine_limit":
            step = f"disksla advise {device} says which disk or machine would have been enough"
        case "unknown_limit" if assignment.source == "none":
            step = how_to_say_the_terms("this disk was")
        case "unknown_limit":
            step = (
                "disksla detect asks the cloud for its type and size; disksla doctor checks them"
            )
    return None if step is None else f"Next: {step}."


def how_to_say_the_terms(what: str) -> str:
    """Return how the terms of disks get known, `what` is such as 'this disk was'."""
    return (
        f"disksla detect asks the cloud what {what} sold as; elsewhere, write the type under disks"
        " in /etc/disksla/disksla.yml (disksla limits lists the types)"
    )


def without_terms(sources: Iterable[str]) -> str | None:
    """Return what to do where the terms of no disk are known, by the sources of all."""
    each = list(sources)
    if not each or any(source != "none" for source in each):
        return None
    what = "this disk was" if len(each) == 1 else "these disks were"
    return (
        f"What {what} sold as is not known, so there is no promise to compare with. Next:"
        f" {how_to_say_the_terms('they were' if len(each) > 1 else 'it was')}."
    )
