"""What is measured on request, or judged of what others measured.

In it: `fio` (run safely), `probes`, `verification` (acceptance tests, `judge`), `benchmark`
(`sweep`), `prometheus` (recorded series), `report` and `advice`.
It may use: `tell` and what is below it. Only `commands` and `serve` use it. Start in `fio.job`.
"""
