// The monitoring mixin of disksla: what to add up, when to call somebody, what to look at.
// Everything that sites choose for themselves stands in `_config`.
(import 'config.libsonnet')
+ (import 'rules/rules.libsonnet')
+ (import 'rules/state.libsonnet')
+ (import 'alerts/alerts.libsonnet')
+ (import 'dashboards/dashboards.libsonnet')
