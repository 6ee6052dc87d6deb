"""What `disksla advise` says, as a page."""

from collections.abc import Iterator

from disksla.base.units import (
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_percent,
    format_size,
)
from disksla.measure.advice.advice import Advice, MachineAdvice, MachineOutcome
from disksla.measure.advice.closed_loop import ClosedLoop
from disksla.measure.advice.search import Candidate, Outcome
from disksla.measure.advice.simulation import ShareRange
from disksla.promise.catalogue import TERMS_TITLES
from disksla.tell.page import DataTable, Line, PagePart

_NUMBERS = ("size", "disks", "IOPS", "throttled", "a request waits", "per month")


def advice_page(advice: Advice) -> Iterator[PagePart]:
    """Yield a table of all disks that were tried, and what is enough in sentences."""
    demand = advice.needs.demand
    yield Line(
        f"{', '.join(advice.devices)}, {_named(advice.present.candidate)}:"
        f" {format_duration(demand.seconds)} recorded, {demand.limited} for"
        f" {format_percent(demand.shown_share)} of the time"
    )
    if demand.loop is not None:
        yield Line(_loop_sentence(demand.loop, demand.limited))
        yield _steps_table(demand.loop)
    if advice.outcomes or demand.loop is None:
        yield _table(advice)
    if demand.loop is None:
        yield from map(_machine_table, advice.machine)
    yield from map(Line, _sentences(advice))


def _sentences(advice: Advice) -> Iterator[str]:
    """Yield what is enough or the next step, and what is not known."""
    loop = advice.needs.demand.loop
    yield from _of_demand(advice) if loop is None else _of_loop(advice, loop)
    if advice.left_out:
        names = ", ".join(advice.left_out)
        least = format_size(max(advice.left_out.values()))
        work = advice.needs.demand.work
        mean = work.bytes / work.requests
        yield (
            f"Left out: {names}. They count a request as up to {least}; those of this load have"
            f" {format_size(mean)} on average."
        )
    if not advice.is_type_known:
        yield "Which type the disk has is not known; --terms compares what its provider sells."


def _of_loop(advice: Advice, loop: ClosedLoop) -> Iterator[str]:
    """Yield what halves the waiting of a closed loop."""
    step, now = advice.next_step, _waits_text(loop, loop.served_iops)
    if step is None:
        iops = 2 * loop.served_iops
        more = f"a limit of {format_count(iops)} IOPS"
        if advice.is_type_known:
            yield f"No disk of this provider halves the waiting; {more} does."
        else:
            yield f"Next step: {more}; a request waits {_waits_text(loop, iops)}, not {now}."
        return
    iops = step.performance_iops
    cost = _price(advice, step)
    yield (
        f"Next step: {_named(step.candidate)}{cost and f', for {cost} per month'}; a request waits"
        f" {_waits_text(loop, iops)}, not {now}, and up to"
        f" {format_count(loop.served(iops).most)} are served per second."
    )
    for machine in advice.machine:
        name = machine.outcomes[0].machine or "machine"
        yield from _first_to_throttle(machine, step, name)


def _loop_sentence(loop: ClosedLoop, limited: str) -> str:
    """Return what was seen of a closed loop while the disk was limited."""
    free = (
        f"; without throttling it takes {format_duration(loop.service_s)} or more"
        if loop.service_s
        else ""
    )
    return (
        f"This is a closed loop: {format_count(loop.inflight)} requests are in flight while the"
        f" disk is {limited}, and {format_count(loop.served_iops)} are served per second. So a"
        f" request takes {format_duration(loop.request_s)}{free}."
    )


def _steps_table(loop: ClosedLoop) -> DataTable:
    """Return what each doubling of the limit changes."""
    columns = ("limit, IOPS", "served per second", "a request waits")
    rows = []
    for number, iops in enumerate(loop.steps()):
        least, most = map(format_count, loop.served(iops))
        rows.append(
            (
                format_count(iops) + ("" if number else " (now)"),
                least if least == most else f"{least} to {most}",
                _waits_text(loop, iops),
            )
        )
    return DataTable(columns, rows, columns)


def _waits_text(loop: ClosedLoop, iops: float) -> str:
    """Return how long a request waits for a limiter under a limit."""
    waits_s = loop.waits_s(iops)
    text = format_duration(waits_s)
    if iops < loop.served_iops:
        return f"{text} or more"
    return f"up to {text}" if iops > loop.served_iops and waits_s else text


def _of_demand(advice: Advice) -> Iterator[str]:
    """Yield what is enough, what may be, and what is not known."""
    present = advice.present
    type_name = present.candidate.terms
    own, least = advice.least("enough", of_own_type=True), advice.least("enough")
    as_it_is = f"as it is, it would be throttled for {_share_text(present.share)} of the time"
    if present.answer == "enough":
        yield "The disk is enough as it is."
    elif own is not None:
        yield f"Enough: {_named(own.candidate)}; {as_it_is}."
    else:
        title = TERMS_TITLES.get(type_name, type_name)
        yield f"No {title} of this size or larger is certain to be enough; {as_it_is}."
    if least is not None and least is not own:
        yield f"Least performance of all types that is enough: {_named(least.candidate)}."
    maybe = advice.least("maybe", of_own_type=True)
    if maybe is not None and maybe.answer == "maybe" and maybe is not present:
        share = _share_text(maybe.share)
        yield f"Perhaps enough: {_named(maybe.candidate)}, throttled for {share} of the time."
    demand = advice.needs.demand
    if demand.limited_share:
        did = "made requests wait" if demand.limited == "throttled" else f"was {demand.limited}"
        yield (
            f"For {format_percent(demand.limited_share)} of the time the disk {did}, and the load"
            " may have asked for more than it was given. The ranges are narrower for a"
            " recording under higher limits."
        )
    for machine in advice.machine:
        chosen = present if present.answer == "enough" else own or least
        of = f", over {machine.shared.title}," if len(advice.machine) > 1 else ""
        yield from _machine_sentences(machine, chosen, of)


def _machine_sentences(
    advice: MachineAdvice, chosen: Outcome | None, of: str = ""
) -> Iterator[str]:
    """Yield whether the machine throttles before the disk that is enough, and which is enough.

    `of` says which of its limits, where it has several.
    """
    present = advice.outcomes[0]
    name = f"{present.machine or 'machine'}{of}"
    yield from _first_to_throttle(advice, chosen, name)
    if present.answer == "enough":
        return
    share = f"for {_share_text(present.share)} of the time"
    enough = next((each for each in advice.outcomes if each.answer == "enough"), None)
    if enough is not None:
        yield f"Enough of a machine: {enough.machine}; the {name} would throttle {share}."
    else:
        yield f"The {name} would throttle {share}, and no larger one is certain to be enough."


def _first_to_throttle(advice: MachineAdvice, chosen: Outcome | None, name: str) -> Iterator[str]:
    if chosen is not None and advice.disk_iops < chosen.performance_iops:
        yield (
            f"The {name} would throttle first: it allows the disk {format_count(advice.disk_iops)}"
            " IOPS of this load."
        )


def _share_text(share: ShareRange) -> str:
    """Return a range of shares, such as '12 to 31 %'."""
    least, most = (format_percent(each) for each in share)
    if least == most:
        return least
    return f"{least.removesuffix(' %') if not least.startswith('under') else least} to {most}"


def _named(candidate: Candidate) -> str:
    """Return a disk in words, such as 'aws.gp3, 200 GiB, with 4200 IOPS'."""
    name = TERMS_TITLES.get(candidate.terms, candidate.terms)
    text = f"{name}, {format_size(candidate.size_bytes)}"
    bought = _bought(candidate)
    return f"{text}, with {bought}" if bought else text


def _bought(candidate: Candidate) -> str:
    """Return what is chosen beside type and size; empty if nothing is."""
    provision = candidate.provision
    parts = [f"{name}={value}" for name, value in provision.options.items()]
    if provision.iops is not None:
        parts.append(f"{format_count(provision.iops)} IOPS")
    if provision.bytes_per_second is not None:
        parts.append(format_listed_bandwidth(provision.bytes_per_second))
    return ", ".join(parts)


def _price(advice: Advice, outcome: Outcome) -> str:
    """Return what a disk costs per month; empty if it is not known."""
    price = advice.price(outcome.candidate)
    return (
        "" if price is None or advice.prices is None else f"{price:.2f} {advice.prices.currency}"
    )


def _table(advice: Advice) -> DataTable:
    """Return a table of the present disk and of the others, by type."""
    loop = advice.needs.demand.loop
    last = ("throttled", "answer") if loop is None else ("a request waits",)
    price = ("per month",) if advice.prices is not None else ()
    rows = []
    for outcome in (advice.present, *advice.outcomes):
        candidate, terms = outcome.candidate, outcome.candidate.terms
        name = terms.partition(".")[2] or TERMS_TITLES.get(terms, terms)
        cells = _outcome_cells(outcome)
        if loop is not None:
            cells = cells[0], _waits_text(loop, outcome.performance_iops)
        rows.append(
            (
                f"{name} (now)" if outcome is advice.present else name,
                format_size(candidate.size_bytes),
                _bought(candidate),
                *cells,
                *([_price(advice, outcome)] if price else []),
            )
        )
    return DataTable(("type", "size", "bought", "IOPS", *last, *price), rows, _NUMBERS)


def _machine_table(advice: MachineAdvice) -> DataTable:
    rows = [
        (
            outcome.machine or "this machine",
            str(len(advice.devices)),
            advice.shared.title,
            *_outcome_cells(outcome),
        )
        for outcome in advice.outcomes
    ]
    columns = ("machine", "disks", "limit over", "IOPS", "throttled", "answer")
    return DataTable(columns, rows, _NUMBERS)


def _outcome_cells(outcome: Outcome | MachineOutcome) -> tuple[str, ...]:
    return format_count(outcome.performance_iops), _share_text(outcome.share), outcome.answer
