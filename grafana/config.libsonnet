// What sites choose for themselves. Override it with `--config` of render.py, or `+ {_config+:: ...}`.
{
  _config+:: {
    // -- of rules and alerts --------------------------------------------------------------------

    // How the daemon's series are found. There is one series `up` of each daemon under it.
    diskslaSelector: 'job="disksla"',
    // What tells one daemon from another; add `cluster` where one Prometheus or Mimir holds many.
    hostLabels: ['job', 'instance'],

    // Where people on duty can read docs/runbook.md. The name is reserved and leads nowhere: put
    // the file where they get at it at night.
    runbookUrl: 'https://disksla.example/docs/runbook.md',
  },
}
