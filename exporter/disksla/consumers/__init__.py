"""Who uses a disk: units, containers and pods, and their programs."""

from disksla.consumers.attribution import Attribution, added, attributed
from disksla.consumers.consumption import Consumption
