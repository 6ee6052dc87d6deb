"""Everything that is known after a tick. START READING HERE, in `pipeline.advance`.

In it: `pipeline` (tick and state to the next state; totals, recordings, the sampler thread),
`history` (what each disk did in the last hour) and `provider_count` (what the provider counted).
It may use: `verdict`, `clouds`, `promise`, `kernel` and `base`.
"""
