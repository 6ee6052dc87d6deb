"""JSON of `disksla advise`, in base units."""

import math
from typing import Any

import msgspec

from disksla.measure.advice.advice import Advice
from disksla.measure.advice.closed_loop import ClosedLoop
from disksla.measure.advice.search import Outcome


def advice_document(advice: Advice) -> dict[str, Any]:
    """Return the advice for JSON, in base units."""
    demand, needs = advice.needs.demand, advice.needs
    own, least = advice.least("enough", of_own_type=True), advice.least("enough")
    step = advice.next_step
    return {
        "devices": advice.devices,
        "seconds": demand.seconds,
        "requests": demand.work.requests,
        "throttled_share": demand.throttled_share,
        "limited_share": demand.limited_share,
        "tolerated_share": needs.tolerated_share,
        "present": _outcome_document(advice, advice.present),
        "closed_loop": needs.demand.loop and _loop_document(needs.demand.loop),
        "next_step": step and _outcome_document(advice, step),
        "enough": least and _outcome_document(advice, least),
        "enough_of_type": own and _outcome_document(advice, own),
        "disks": [_outcome_document(advice, each) for each in advice.outcomes],
        "left_out": advice.left_out,
        "currency": advice.prices and advice.prices.currency,
        "machine": [
            {
                "group": machine.shared.name,
                "devices": machine.devices,
                "disk_iops": _finite(machine.disk_iops),
                "machines": [
                    {
                        "machine": each.machine or None,
                        "iops": _finite(each.performance_iops),
                        "throttled_share": each.share._asdict(),
                        "answer": each.answer,
                    }
                    for each in machine.outcomes
                ],
            }
            for machine in advice.machine
        ],
    }


def _outcome_document(advice: Advice, outcome: Outcome) -> dict[str, Any]:
    candidate = outcome.candidate
    return {
        "terms": candidate.terms,
        "size_bytes": candidate.size_bytes,
        "provisioned": msgspec.structs.asdict(candidate.provision),
        "limits": msgspec.structs.asdict(candidate.limits.rates),
        "iops": _finite(outcome.performance_iops),
        "throttled_share": outcome.share._asdict(),
        "answer": outcome.answer,
        "price_per_month": advice.price(outcome.candidate),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _loop_document(loop: ClosedLoop) -> dict[str, Any]:
    """Return what was seen of a closed loop, and its steps."""
    return {
        "inflight": loop.inflight,
        "served_iops": loop.served_iops,
        "request_s": loop.request_s,
        "service_s": loop.service_s or None,
        "steps": [
            {
                "iops": iops,
                "served_iops": loop.served(iops)._asdict(),
                "most_wait_s": loop.waits_s(iops),
            }
            for iops in loop.steps()
        ],
    }
