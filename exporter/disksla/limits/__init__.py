"""What a disk was sold as: catalogue, terms, and the limits for its size."""

from disksla.limits.assignment import (
    TERMS_SOURCES,
    UNKNOWN_TERMS,
    Assignment,
    Caching,
    TermsSource,
)
from disksla.limits.cost_model import Charge, Work, load_ratio
from disksla.limits.derivation import derivation
from disksla.limits.derive import (
    EffectiveIops,
    beyond_bounds,
    beyond_sizes,
    derive_limits,
    effective_iops,
    provision_bounds,
)
from disksla.limits.larger_machine import larger_machine, machine_family
from disksla.limits.limiter import Limiter, LimiterKind, LimiterTerms
from disksla.limits.limits import (
    NO_LIMITS,
    USUAL_IOPS_CONDITIONS,
    Bucket,
    BudgetKind,
    Burst,
    Conditions,
    LatencyKind,
    Limits,
    PromisedShare,
    Rates,
    Resource,
    build_limits,
    promised_share,
)
from disksla.limits.machine import MachineChoice, SharedLimits, shared_limits
from disksla.limits.terms import Catalog, Provision, Terms
