"""What was chosen when a disk was bought, from the limits that its daemon published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, MIB
from disksla.measure.advice import provision_by_limits
from disksla.promise.catalogue import Provision, Rates, derive_limits, provision_bounds
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.terms import Terms

CATALOG = load_catalog()
TYPES = [row for row in CATALOG.rows if row.budget is not None]
HIGHEST = 1e5
"""Of IOPS, where the catalogue has no highest value."""


@st.composite
def sold(draw: st.DrawFn) -> tuple[Terms, int, Provision]:
    """Return a disk that is sold: without extras, with one option, or with provisioned IOPS."""
    terms = draw(st.sampled_from(TYPES))
    least_gib = -(-(terms.sizes.least_bytes or GIB) // GIB)
    size_bytes = draw(st.integers(least_gib, least_gib + 2000)) * GIB
    provisions = [Provision()]
    provisions += [
        Provision(options={name: value})
        for name, option in terms.options.items()
        for value in option.values
    ]
    bounds = provision_bounds(terms, size_bytes).iops
    if bounds is not None:
        iops = draw(
            st.integers(int(bounds[0]) + 1, int(max(bounds[0] + 2, min(bounds[1], HIGHEST))))
        )
        provisions.append(Provision(float(iops)))
    return terms, size_bytes, draw(st.sampled_from(provisions))


@given(sold())
def test_what_is_found_has_the_published_limits(disk: tuple[Terms, int, Provision]) -> None:
    terms, size_bytes, provision = disk
    try:
        published = derive_limits(terms, size_bytes, provision).rates
    except DiskslaError:  # a value must be chosen, or the disk is too small for an option
        return
    found = provision_by_limits(terms, size_bytes, published)
    assert found is not None
    assert derive_limits(terms, size_bytes, found).rates == published


@pytest.mark.parametrize(
    ("terms", "size_gib", "bought"),
    [
        ("aws.gp3", 100, Provision(4200.0, 250.0 * MIB)),
        ("aws.gp3", 100, Provision()),
        ("ctyun.xssd-0", 200, Provision(20000.0)),  # beyond those of the size
        ("azure.premium-ssd", 100, Provision(options={"tier": "P40"})),
    ],
)
def test_what_was_bought(terms: str, size_gib: int, bought: Provision) -> None:
    row = CATALOG[terms]
    published = derive_limits(row, size_gib * GIB, bought).rates
    assert provision_by_limits(row, size_gib * GIB, published) == bought


def test_limits_of_another_size_or_type_are_not_explained() -> None:
    terms = CATALOG["vk.ceph-hdd"]
    published = derive_limits(terms, 100 * GIB).rates
    assert provision_by_limits(terms, 500 * GIB, published) is None
    assert provision_by_limits(terms, 100 * GIB, Rates()) is None
    assert provision_by_limits(CATALOG["azure.premium-ssd"], 100 * GIB, published) is None
