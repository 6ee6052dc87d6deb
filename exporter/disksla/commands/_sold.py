"""What a disk was sold as, by the options of a command, and what else its provider sells."""

import argparse

from disksla.advice import Candidate, Needs, Outcome, outcome_of, outcomes_of_type
from disksla.commands._provision import read_provision
from disksla.errors import DiskslaError
from disksla.limits import Catalog, Provision, Terms, derive_limits


def sold_by_options(arguments: argparse.Namespace, terms: Terms, size_bytes: int) -> Candidate:
    """Return the disk of the options. Raise DiskslaError if a value is invalid or missing."""
    chosen = read_provision(arguments)
    return Candidate(terms.id, size_bytes, chosen, derive_limits(terms, size_bytes, chosen))


def check_alone(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError if a size or a provisioned value is there without --terms."""
    if arguments.size is not None or read_provision(arguments) != Provision():
        raise DiskslaError("found --size or provisioned values; expected them with --terms")


def outcomes_of_provider(catalog: Catalog, present: Candidate, needs: Needs) -> list[Outcome]:
    """Return what the present disk would have done, and the others of its provider."""
    provider = catalog[present.terms].provider
    others = (
        outcome
        for terms in catalog.rows
        if terms.provider == provider and terms.budget is not None and not terms.is_file_storage
        for outcome in outcomes_of_type(terms, present.size_bytes, needs)
        if outcome.candidate != present
    )
    return [outcome_of(present, needs), *others]
