"""Asks the daemon on this machine for its readiness and its metrics."""

import ssl
from urllib.parse import urlencode

import msgspec
from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from disksla.commands.doctor_checks.daemon_checks import METRICS
from disksla.commands.doctor_checks.facts import DaemonFacts
from disksla.tell.api import OK
from disksla.tell.api.daemon_client import (
    NO_ANSWER,
    DaemonAddress,
    addresses_of,
    get_page,
    reason_of,
)


def ask_daemon(url: str | None) -> DaemonFacts:
    """Return what the daemon answers, or why it does not.

    Raise DiskslaError if the URL is not of this machine.
    """
    first, *others = addresses_of(url)
    facts = _facts(first)
    for address in others:
        if facts.problem is None:
            break
        before, facts = facts, _facts(address)
        if facts.problem is not None:
            problem = f"{facts.problem}; {before.url}: {before.problem}"
            facts = msgspec.structs.replace(facts, problem=problem)
    return facts


def _facts(address: DaemonAddress) -> DaemonFacts:
    shown = str(address)
    try:
        ready_status, ready = get_page(address, "/-/ready")
        query = urlencode([("name[]", name) for name in METRICS])
        status, page = get_page(address, f"{address.path}?{query}")
    except ssl.SSLError as error:
        return DaemonFacts(shown, None, reason_of(error))
    except NO_ANSWER as error:
        return DaemonFacts(shown, reason_of(error))
    samples = parse_samples(page) if status == OK else ()
    return DaemonFacts(
        url=shown,
        problem=None,
        unseen=None,
        ready_status=ready_status,
        ready_text=ready.strip(),
        metrics_status=status,
        samples=samples,
    )


def parse_samples(page: str) -> tuple[Sample, ...]:
    """Return the samples of a page; none if it is not a page of metrics."""
    try:
        families = tuple(text_string_to_metric_families(page))
    except (IndexError, ValueError):  # the parser raises IndexError at a label without a name
        return ()
    return tuple(sample for family in families for sample in family.samples)
