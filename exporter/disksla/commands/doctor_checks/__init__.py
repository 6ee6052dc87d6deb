"""`disksla doctor`: what must be right on a machine, examined by pure functions of its facts."""

from disksla.commands.doctor_checks.check_result import CheckResult, counts, in_groups, worst
from disksla.commands.doctor_checks.examine import examine
