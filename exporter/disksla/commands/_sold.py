"""What a disk was sold as, by the options of a command, and what else its provider sells."""

import argparse
from typing import NamedTuple

from disksla.advice import (
    Candidate,
    Needs,
    Outcome,
    counts_small_requests_as,
    halving,
    outcome_of,
    outcomes_of_type,
)
from disksla.commands._provision import read_provision
from disksla.errors import DiskslaError
from disksla.limits import Catalog, Provision, Terms, derive_limits


class Outcomes(NamedTuple):
    """What the disks of a provider would have done to a load, the present one first."""

    disks: list[Outcome]
    left_out: dict[str, int]
    """The types that count its small requests as so many bytes; they are not sold for it."""


def sold_by_options(arguments: argparse.Namespace, terms: Terms, size_bytes: int) -> Candidate:
    """Return the disk of the options. Raise DiskslaError if a value is invalid or missing."""
    chosen = read_provision(arguments)
    return Candidate(terms.id, size_bytes, chosen, derive_limits(terms, size_bytes, chosen))


def check_alone(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError if a size or a provisioned value is there without --terms."""
    if arguments.size is not None or read_provision(arguments) != Provision():
        raise DiskslaError("found --size or provisioned values; expected them with --terms")


def outcomes_of_provider(catalog: Catalog, present: Candidate, needs: Needs) -> Outcomes:
    """Return what the present disk would have done, and the others of its provider.

    Those are the ones that may be enough or, for a closed loop, under which it waits half as long.
    """
    sold = catalog.find(present.terms)
    of_type = outcomes_of_type if needs.demand.loop is None else halving
    outcomes, left_out = [outcome_of(present, needs)], dict[str, int]()
    for terms in catalog.rows:
        is_disk = terms.budget is not None and not terms.is_file_storage
        if sold is None or terms.provider != sold.provider or not is_disk:
            continue
        found = of_type(terms, present.size_bytes, needs)
        counted_as = [counts_small_requests_as(each.candidate.limits, needs) for each in found]
        if None in counted_as or not found:
            outcomes += [each for each in found if each.candidate != present]
        else:
            left_out[terms.id] = max(filter(None, counted_as))
    return Outcomes(outcomes, left_out)
