"""`disksla doctor`: what must be right on a machine, examined by pure functions of its facts."""

from disksla.doctor.check_result import CheckResult, counts, in_groups, worst
from disksla.doctor.examine import examine
