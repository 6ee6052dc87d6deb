"""All fuzz targets by name."""

from fuzz.target import Target
from fuzz.targets import groups, kept, results, settings, web

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (settings, groups, kept, results, web)
    for target in module.TARGETS
}
