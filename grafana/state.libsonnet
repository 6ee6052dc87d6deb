// What is said of a disk: the worst that holds for a noticeable share of the time.
// As a number, its whole part is the state, and what stands behind the point is that share.
{
  states: [
    { value: 0, color: 'text', text: 'idle' },
    { value: 1, color: 'green', text: 'fine: the disk gives what is asked of it' },
    { value: 2, color: 'yellow', text: 'held at a limit that no terms explain' },
    { value: 3, color: 'orange', text: 'held at the limit you bought' },
    { value: 4, color: 'purple', text: 'out of credits: held at the base limit' },
    { value: 5, color: 'red', text: 'gives less than promised' },
    { value: 6, color: 'dark-red', text: 'stalled: nothing completes' },
  ],

  // `share` gives the expression of a verdict's share of the time. The others are conditions:
  // `explained` holds of disks that are held at a limit of their terms, `spent` of those whose
  // credits are proven to be used up. `disk` are the labels that tell a disk from another.
  expr(share, explained, spent, noticeable, disk): |||
    clamp_max(%(stalled)s > %(noticeable)g, 0.99) + 6
    or clamp_max(%(below)s > %(noticeable)g, 0.99) + 5
    or clamp_max(%(throttled)s > %(noticeable)g and on (%(disk)s) %(spent)s, 0.99) + 4
    or clamp_max(%(throttled)s > %(noticeable)g and on (%(disk)s) %(explained)s, 0.99) + 3
    or clamp_max(%(throttled)s > %(noticeable)g, 0.99) + 2
    or clamp_max(1 - %(idle)s > 0.001, 0.99) + 1
    or %(idle)s * 0
  ||| % {
    stalled: share('stalled'),
    below: share('below'),
    throttled: share('throttled'),
    idle: share('idle'),
    explained: explained,
    spent: spent,
    noticeable: noticeable,
    disk: disk,
  },
}
