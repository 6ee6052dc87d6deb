// The state of each disk as one series, so that a list of the worst of ten thousand disks is cheap.
local state = import '../state.libsonnet';

{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local share(verdict) = 'sum without (verdict) (%s{verdict="%s"})'
                         % [promql.verdict_share('instance_device_verdict'), verdict],
  local throttled(matcher) = 'sum without (limit) (%s{%s})'
                             % [promql.limit_share('instance_device_limit'), matcher],

  prometheusRules+:: {
    groups+: [{
      name: 'disksla.state',
      interval: config.ruleInterval,
      rules: [{
        record: promql.state,
        expr: state.expr(
          share,
          at_known_limit=throttled('limit!="unknown"') + ' > 0',
          out_of_credits='min without (resource) (%s / %s) < %g' % [
            promql.of('disksla_burst_credits_upper_bound'),
            promql.of('disksla_burst_credits_capacity'),
            config.creditsEmptyShare,
          ],
          at_machine_limit=throttled(promql.by_machine) + ' > ' + throttled(promql.by_others),
          noticeable=config.noticeableShare,
          disk=promql.disk
        ),
      }],
    }],
  },
}
