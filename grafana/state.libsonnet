// State of a disk: the worst condition that holds for a noticeable share of the time.
// In the number, the integer part is the state, and the fraction is that share.
{
  states: [
    { value: 0, color: 'gray', text: 'Idle' },
    { value: 1, color: 'green', text: 'OK' },
    { value: 2, color: 'yellow', text: 'Throttled at an unknown limit' },
    { value: 3, color: 'orange', text: 'You: throttled at the limit you bought' },
    { value: 4, color: 'purple', text: 'You: out of credits, throttled at the baseline' },
    { value: 5, color: 'dark-orange', text: 'The machine: throttled at its limit' },
    { value: 6, color: 'light-red', text: 'The disk: slow' },
    { value: 7, color: 'red', text: 'The disk: gives less than promised' },
    { value: 8, color: 'dark-red', text: 'The disk: hung, no request completes' },
  ],

  // `share` is a function that returns the expression of the share of a verdict, and `active` that of
  // all verdicts but idle; `slow` is the expression of the share in which the disk was slow. The others are conditions: `at_known_limit` selects disks that are throttled at a limit of their terms,
  // `out_of_credits` those whose credits are used up for certain, `at_machine_limit` those that are
  // throttled at a limit of the machine most of the time throttled. `disk` lists the labels that
  // identify a disk.
  expr(share, active, slow, at_known_limit, out_of_credits, at_machine_limit, noticeable, disk): |||
    clamp_max(%(stalled)s > %(noticeable)g, 0.99) + 8
    or clamp_max(%(below)s > %(noticeable)g, 0.99) + 7
    or clamp_max(%(slow)s > %(noticeable)g, 0.99) + 6
    or clamp_max(%(throttled)s > %(noticeable)g and on (%(disk)s) %(at_machine_limit)s, 0.99) + 5
    or clamp_max(%(throttled)s > %(noticeable)g and on (%(disk)s) %(out_of_credits)s, 0.99) + 4
    or clamp_max(%(throttled)s > %(noticeable)g and on (%(disk)s) %(at_known_limit)s, 0.99) + 3
    or clamp_max(%(throttled)s > %(noticeable)g, 0.99) + 2
    or clamp_max(%(active)s > 0.001, 0.99) + 1
    or (%(idle)s > 0) * 0
  ||| % {
    stalled: share('stalled'),
    below: share('below'),
    throttled: share('throttled'),
    idle: share('idle'),
    active: active,
    slow: slow,
    at_known_limit: at_known_limit,
    out_of_credits: out_of_credits,
    at_machine_limit: at_machine_limit,
    noticeable: noticeable,
    disk: disk,
  },
}
