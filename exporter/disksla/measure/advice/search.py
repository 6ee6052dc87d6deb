"""What a provider sells that would have been enough: types, sizes, values and prices."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.schema import Number, Text
from disksla.base.units import GIB, MB, MIB
from disksla.measure.advice.closed_loop import steady_iops
from disksla.measure.advice.demand import Demand
from disksla.measure.advice.simulation import ShareRange, least_share, most_share, throttled_share
from disksla.promise.catalogue import Limits, Provision, Terms, derive_limits, provision_bounds

Answer = Literal["enough", "maybe", "not enough"]

_IOPS_STEP = 100
_MOST_IOPS = 10_000_000.0
_MOST_BYTES_PER_SECOND = 1e12
"""Where the catalogue has no highest value."""
_SMALL_SHARE = 1 / 16
"""Of what a request counts as: AWS merges adjacent ones, so that larger ones may be right."""
_MOST_SIZE_BYTES = 65536 * GIB
"""Where the catalogue has no largest size."""


class Needs(NamedTuple):
    """What a load asked for, and which share of the time it may be throttled."""

    demand: Demand
    tolerated_share: float
    tolerance_ratio: float
    """By how much less than a limit a load is at it, as in the verdicts."""

    def is_met(self, limits: Limits, wanted: Answer) -> bool:
        """Return whether limits are enough, or may be if that is wanted."""
        share = most_share if wanted == "enough" else least_share
        return share(self.demand, limits, self.tolerance_ratio) <= self.tolerated_share

    def share(self, limits: Limits) -> ShareRange:
        """Return the share of the time in which limits would have throttled the load."""
        return throttled_share(self.demand, limits, self.tolerance_ratio)

    def answer(self, share: ShareRange) -> Answer:
        """Return whether limits with this share are enough."""
        if share.most <= self.tolerated_share:
            return "enough"
        return "not enough" if share.least > self.tolerated_share else "maybe"

    def performance_iops(self, limits: Limits) -> float:
        """Return the IOPS of a steady load of this mix of requests; infinite without limits.

        Credits do not count. This is what orders limits by performance.
        """
        return steady_iops(self.demand.work, limits)


class Candidate(NamedTuple):
    """A disk that is sold."""

    terms: str
    size_bytes: int
    provision: Provision
    limits: Limits


class Outcome(NamedTuple):
    """What a candidate would have done to the load."""

    candidate: Candidate
    share: ShareRange
    answer: Answer
    performance_iops: float


def outcome_of(candidate: Candidate, needs: Needs) -> Outcome:
    """Return what a candidate would have done to the load."""
    share = needs.share(candidate.limits)
    performance_iops = needs.performance_iops(candidate.limits)
    return Outcome(candidate, share, needs.answer(share), performance_iops)


def outcomes_of_type(terms: Terms, size_bytes: int, needs: Needs) -> list[Outcome]:
    """Return the disks of a type that matter, by performance; none if none is as large.

    They are the one without extras, the least that may be enough, and the least that is enough. If
    none may be, the second is that with the highest performance.
    """
    plain = _plain(terms, size_bytes)
    if plain is None:
        return []
    outcomes = [outcome_of(plain, needs)]
    for wanted in _WANTED:
        if not any(_is_as_good(each.answer, wanted) for each in outcomes):
            best = _best(terms, plain, needs, wanted)
            if best.candidate not in [each.candidate for each in outcomes] and (
                wanted == "maybe" or best.answer == "enough"
            ):
                outcomes.append(best)
    return outcomes


def halving(terms: Terms, size_bytes: int, needs: Needs) -> list[Outcome]:
    """Return the disks of a type under which a closed loop waits at most half as long.

    They are the one without extras or, if that is not enough, the least in each way to buy more.
    """
    loop, plain = needs.demand.loop, _plain(terms, size_bytes)
    if loop is None or plain is None:
        return []

    def fits(candidate: Candidate) -> bool:
        return loop.is_halved(needs.performance_iops(candidate.limits))

    found = [plain] if fits(plain) else _more(terms, plain.size_bytes, fits)
    return [outcome_of(each, needs) for each in found if fits(each)]


def counts_small_requests_as(limits: Limits, needs: Needs) -> int | None:
    """Return the bytes as which a disk counts requests that are much smaller.

    None if it does not. Such a disk is not sold for the load.
    """
    work = needs.demand.work
    least_bytes = max((each.least_request_bytes or 0 for each in limits.buckets), default=0)
    return least_bytes if work.bytes < work.requests * least_bytes * _SMALL_SHARE else None


def least_of(outcomes: Iterable[Outcome], wanted: Answer) -> Outcome | None:
    """Return the outcome with the lowest performance that is at least as good; None if none is.

    Of several with the same performance, the first.
    """
    good = (each for each in outcomes if _is_as_good(each.answer, wanted))
    return min(good, key=lambda each: each.performance_iops, default=None)


_WANTED: tuple[Answer, Answer] = ("maybe", "enough")
_Fits = Callable[[Candidate], bool]


def _is_as_good(answer: Answer, wanted: Answer) -> bool:
    return answer in {"enough", wanted}


def _best(terms: Terms, plain: Candidate, needs: Needs, wanted: Answer) -> Outcome:
    """Return the least disk of a type that is as good as wanted, or the highest performance."""

    def fits(candidate: Candidate) -> bool:
        return needs.is_met(candidate.limits, wanted)

    found = [outcome_of(each, needs) for each in _more(terms, plain.size_bytes, fits)]
    highest = max([outcome_of(plain, needs), *found], key=lambda each: each.performance_iops)
    return least_of(found, wanted) or highest


def _more(terms: Terms, size_bytes: int, fits: _Fits) -> list[Candidate]:
    """Return the least disk of a type that fits in each way to buy more, or the most of it."""
    return [
        candidate
        for search in (_by_option, _by_provision, _by_size)
        for candidate in search(terms, size_bytes, fits)
    ]


def _candidate(terms: Terms, size_bytes: int, provision: Provision) -> Candidate:
    limits = derive_limits(terms, size_bytes, provision)
    return Candidate(terms.id, size_bytes, provision, limits)


def _plain(terms: Terms, size_bytes: int) -> Candidate | None:
    """Return the disk of a type without extras, at this size or the smallest that is sold."""
    size_bytes = max(size_bytes, terms.sizes.least_bytes or 0)
    if size_bytes > (terms.sizes.most_bytes or math.inf):
        return None
    try:
        return _candidate(terms, size_bytes, Provision())
    except DiskslaError:  # a value must be chosen
        iops, bandwidth = provision_bounds(terms, size_bytes)
        least = Provision(
            None if iops is None else iops[0] or None,
            None if bandwidth is None else bandwidth[0] or None,
        )
        return _candidate(terms, size_bytes, least)


def _by_option(terms: Terms, size_bytes: int, _fits: _Fits) -> Iterator[Candidate]:
    """Yield the disks of this size with another value of an option."""
    for name, option in terms.options.items():
        for value in option.values:
            try:
                yield _candidate(terms, size_bytes, Provision(options={name: value}))
            except DiskslaError:  # too small for this value
                continue


def _by_provision(terms: Terms, size_bytes: int, fits: _Fits) -> Iterator[Candidate]:
    """Yield the disk of this size with the least provisioned values; the most if none fits.

    The IOPS are found with the most bandwidth that they permit, and then the bandwidth.
    """
    iops, bandwidth = provision_bounds(terms, size_bytes)
    if iops is None and bandwidth is None:
        return
    found = _highest(terms, size_bytes)
    if iops is not None:
        found = _first(iops, _IOPS_STEP, _MOST_IOPS, partial(_highest, terms, size_bytes), fits)
    value = found.provision.iops
    bandwidth = provision_bounds(terms, size_bytes, Provision(value)).bytes_per_second
    if bandwidth is not None:
        step = MB if bandwidth[0] % MIB else MIB
        found = _first(
            bandwidth,
            step,
            _MOST_BYTES_PER_SECOND,
            lambda rate: _candidate(terms, size_bytes, Provision(value, rate or None)),
            fits,
        )
    yield found


def _by_size(terms: Terms, size_bytes: int, fits: _Fits) -> Iterator[Candidate]:
    """Yield the smallest larger disk that fits, with the least provisioned values.

    If none fits, it is the largest, with the most of them.
    """
    most_bytes = max(size_bytes, terms.sizes.most_bytes or _MOST_SIZE_BYTES)
    found = _first(
        (size_bytes, most_bytes), GIB, most_bytes, lambda size: _highest(terms, int(size)), fits
    )
    if found.size_bytes > size_bytes:
        yield next(_by_provision(terms, found.size_bytes, fits), found)


def _highest(terms: Terms, size_bytes: int, iops: float | None = None) -> Candidate:
    """Return the disk of a size with the most values that can be chosen beside these IOPS."""
    bounds = provision_bounds(terms, size_bytes).iops
    if bounds is not None and iops is None:
        iops = min(bounds[1], _MOST_IOPS)
    iops = iops or None
    bandwidth = provision_bounds(terms, size_bytes, Provision(iops)).bytes_per_second
    most = None if bandwidth is None else min(bandwidth[1], _MOST_BYTES_PER_SECOND)
    return _candidate(terms, size_bytes, Provision(iops, most))


def _first(
    bounds: tuple[float, float],
    step: float,
    highest: float,
    candidate: Callable[[float], Candidate],
    fits: _Fits,
) -> Candidate:
    """Return the candidate of the least value that fits, as all above it do; else of the most.

    Values that are sold are the least of the bounds, multiples of a step, and the most.
    """
    least, most = bounds[0], max(bounds[0], min(bounds[1], highest))
    units = least // step

    def of(number: int) -> Candidate:
        return candidate(min(most, (units + number) * step) if number else least)

    low, high = 0, max(0, math.ceil(most / step - units))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(of(middle)) else (middle + 1, high)
    return of(low)


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a disk of a type costs per month."""

    gib: Number
    """Of one GiB of its size."""
    iops: Number | None = None
    """Of one provisioned IOPS above those that are included."""
    iops_included: Number | None = None
    mib_per_s: Number | None = None
    """Of 1 MiB/s of provisioned bandwidth above what is included."""
    mib_per_s_included: Number | None = None

    def of(self, size_bytes: int, provision: Provision) -> float | None:
        """Return what a disk costs per month; None if the list does not say it."""
        bandwidth = provision.bytes_per_second
        parts = (
            self.gib * size_bytes / GIB,
            _beyond(provision.iops, self.iops_included, self.iops),
            _beyond(bandwidth and bandwidth / MIB, self.mib_per_s_included, self.mib_per_s),
        )
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) and not provision.options else None


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of disk types, by the id in the catalogue."""

    currency: Text
    prices: Mapping[str, Price]

    def price_of(self, candidate: Candidate) -> float | None:
        """Return what a disk costs per month; None if the list does not say it."""
        price = self.prices.get(candidate.terms)
        return None if price is None else price.of(candidate.size_bytes, candidate.provision)


def _beyond(bought: float | None, included: float | None, each: float | None) -> float | None:
    """Return what is paid for values above those that are included; None if it is not known."""
    paid = max(0.0, (bought or 0.0) - (included or 0.0))
    if not paid:
        return 0.0
    return None if each is None else paid * each
