// Monitoring mixin of disksla: recording rules, alerts and dashboards. Settings are in `_config`.
(import 'config.libsonnet')
+ (import 'rules/rules.libsonnet')
+ (import 'rules/state.libsonnet')
+ (import 'alerts/alerts.libsonnet')
+ (import 'rules/node_exporter.libsonnet')
+ (import 'dashboards/dashboards.libsonnet')
