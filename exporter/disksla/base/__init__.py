"""What every room uses, and nothing of disks.

In it: errors, units, escaping of text, histograms and tables for terminals; `schema` (files to
records, with every problem); `operating_system` (log, jobs, locks, state files, systemd).
It may use: libraries only. Start reading in `units`.
"""
