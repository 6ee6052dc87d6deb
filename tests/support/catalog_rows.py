"""Rows of the catalogue, built from plain data."""

from typing import Any

from disksla.base.schema.reader import read_record
from disksla.promise.catalogue.terms import Terms
from support.schema_nodes import node

ROW: dict[str, Any] = {
    "id": "acme.disk",
    "title": "A disk",
    "provider": "acme",
    "provider_name": "Acme",
    "examples": [{"size_bytes": "1GiB", "rates": {}}],
}


def make_terms(**fields: Any) -> Terms:
    """Return a row without limits, plus the given fields. Raise ValueError if it is invalid."""
    terms, problems = read_record(node({**ROW, **fields}), Terms)
    if terms is None:
        raise ValueError("\n".join(problem.as_line() for problem in problems))
    return terms
