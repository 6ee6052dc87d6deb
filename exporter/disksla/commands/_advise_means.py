"""Advice for a disk whose series of node_exporter a Prometheus server has."""

import argparse
import time
from collections.abc import Iterable

from disksla.base.errors import DiskslaError
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._advise_series import ScrapedMachine, advice_on, the_only
from disksla.commands._context import read_all
from disksla.commands._means import WITHIN_S, sold_as, sold_by_files
from disksla.commands._prometheus import period_of, server_of
from disksla.measure.advice import Needs, demand_of_means
from disksla.measure.advice.advice import Advice
from disksla.measure.means import is_at_limit, total_means
from disksla.measure.means.node_exporter import find_node_disks, read_means
from disksla.measure.prometheus import Facts, Selection
from disksla.promise.catalogue import NO_LIMITS


def advice_of_means(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice for the disk of the options. Raise DiskslaError."""
    period, server = period_of(arguments, time.time()), server_of(arguments)
    configuration = read_all(arguments)
    wanted = Selection(patterns=(arguments.device, f"*:{arguments.device}"))
    named = dict(carry_out(find_node_disks(server, wanted, period), WITHIN_S))
    name = the_only([*named], arguments.device)
    present, reason = sold_as(arguments, configuration, named[name])
    if configuration.catalog.find(present.terms) is None or present.limits.budget is None:
        raise DiskslaError(
            f"cannot advise on {name.title}: {reason}; say what it was sold as, with --terms and"
            " --size"
        )
    names = {name.device: name}
    candidates = {name.device: present}
    for other, disk in carry_out(find_node_disks(server, Selection(), period), WITHIN_S):
        if other.instance == name.instance and disk.name not in names:
            names[disk.name] = other
            candidates[disk.name] = sold_by_files(configuration, disk)[0]
    facts = {
        device: Facts(terms=each.terms, size_bytes=each.size_bytes)
        for device, each in candidates.items()
    }

    def needs_of(devices: Iterable[str]) -> Needs:
        of_disks = [
            (carry_out(read_means(server, names[each], period), WITHIN_S), candidates[each].limits)
            for each in devices
        ]
        at_ends = {
            mean.end_s
            for means, limits in of_disks
            for mean, is_at in zip(means, is_at_limit(means, limits), strict=True)
            if is_at
        }
        means = total_means([means for means, _ in of_disks])
        known = present.limits if len(of_disks) == 1 else NO_LIMITS
        demand = demand_of_means(means, [mean.end_s in at_ends for mean in means], known)
        return Needs(demand, tolerated_share, configuration.settings.assessment.tolerance_ratio)

    scraped = ScrapedMachine(name, facts, "")
    return advice_on(arguments, configuration.catalog, scraped, present, needs_of)
