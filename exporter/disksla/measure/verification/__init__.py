"""The provider's acceptance test: run or imported, judged and reported."""

from disksla.measure.verification.report import SuiteTestResult, VerificationReport
