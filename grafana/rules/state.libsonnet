// The state of each disk as one series, so that a list of the worst of ten thousand disks is cheap.
local state = import '../state.libsonnet';

{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local share(verdict) = 'sum without (verdict) (%s{verdict="%s"})'
                         % [promql.verdict_share('instance_device_verdict'), verdict],

  prometheusRules+:: {
    groups+: [{
      name: 'disksla.state',
      interval: config.ruleInterval,
      rules: [{
        record: promql.state,
        expr: state.expr(
          share,
          at_known_limit='sum without (limit) (%s{limit!="unknown"}) > 0'
                         % promql.limit_share('instance_device_limit'),
          out_of_credits='min without (resource) (%s / %s) < %g' % [
            promql.of('disksla_burst_credits_upper_bound'),
            promql.of('disksla_burst_credits_capacity'),
            config.creditsEmptyShare,
          ],
          noticeable=config.noticeableShare,
          disk=promql.disk
        ),
      }],
    }],
  },
}
