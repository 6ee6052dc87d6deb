// The state of each disk as one series, so that a list of the worst of ten thousand disks is cheap.
//
// Shares are of the time, not of the assessed time: they differ only within `rateWindow` after a gap,
// and the sum over all verdicts of each disk would take half of the time of this rule.
local state = import '../state.libsonnet';

{
  local config = $._config,
  local promql = (import '../promql.libsonnet')(config),
  local share(verdict) =
    'sum without (verdict) (' + promql.verdict_rate('verdict="' + verdict + '"') + ')',

  prometheusRules+:: {
    groups+: [{
      name: 'disksla.state',
      interval: config.slowRuleInterval,
      rules: [{
        record: promql.state,
        expr: '(\n' + state.expr(
          share,
          active='sum without (verdict) (' + promql.verdict_rate('verdict!="idle"') + ')',
          slow=promql.slow_rate,
          at_known_limit=promql.throttled_rate('limit!="unknown"') + ' > 0',
          out_of_credits='min without (resource) (%s / %s) < %g' % [
            promql.of('disksla_burst_credits_upper_bound'),
            promql.of('disksla_burst_credits_capacity'),
            config.creditsEmptyShare,
          ],
          // Seconds throttled are those by all limits.
          at_machine_limit=promql.throttled_rate(promql.by_machine) + ' > 0.5 * ' + share('throttled'),
          noticeable=config.noticeableShare,
          disk=promql.disk
        ) + ')\n' + promql.with_info(promql.claim) + '\n',
      }],
    }],
  },
}
