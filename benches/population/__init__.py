"""The population bench: simulated disks, with and without limiters, judged by the real code.

`draw(seed, number)` returns one disk of the population: its parameters, the ticks that a sampler
would have read, and the truth. `python -m population --help` describes the program.
"""

from population.draws import Draw, draw
from population.simulation import DEVICE

__all__ = ["DEVICE", "Draw", "draw"]
