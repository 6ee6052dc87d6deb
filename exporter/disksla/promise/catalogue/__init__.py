"""What a disk was sold as: catalogue, terms, and the limits for its size."""

from disksla.promise.catalogue.cost_model import (
    Additive,
    Charge,
    CostModel,
    Metered,
    Work,
    load_ratio,
)
from disksla.promise.catalogue.derivation import (
    BUDGETS,
    DerivationStep,
    client_text,
    derivation,
    group_rates,
    latency_text,
    limiter_text,
    metered_text,
    percent_text,
    shared_text,
)
from disksla.promise.catalogue.derive import (
    EffectiveIops,
    beyond_bounds,
    beyond_sizes,
    derive_limits,
    effective_iops,
    provision_bounds,
)
from disksla.promise.catalogue.larger_machine import larger_machine, machine_family
from disksla.promise.catalogue.limits import (
    CUSTOM_TERMS,
    NO_LIMITS,
    TERMS_SOURCES,
    TERMS_TITLES,
    UNKNOWN_TERMS,
    USUAL_IOPS_CONDITIONS,
    Assignment,
    Bucket,
    BudgetKind,
    Budgets,
    Burst,
    Caching,
    Conditions,
    LatencyKind,
    LimiterTerms,
    Limits,
    OneUnit,
    PromisedShare,
    Rates,
    Resource,
    TermsSource,
    build_limits,
    promised_share,
)
from disksla.promise.catalogue.machine import (
    Machine,
    MachineChoice,
    MachineGroup,
    MachineRules,
    SharedLimits,
    least_rates,
    shared_limits,
)
from disksla.promise.catalogue.options import chosen_values, client_of, with_options
from disksla.promise.catalogue.rules import allocation_units
from disksla.promise.catalogue.terms import Catalog, Confidence, Provision, RowSource, Terms
