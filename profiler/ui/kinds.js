// The kinds of samples. Made from the daemon's own table (profiler/model/src/kind.rs); write it anew by
// `EMBERSCOPE_WRITE_DOCS=1 cargo test -p emberscope --lib cli::reference`.

/** Each with its names in answers, and what the page calls it. */
export const KINDS = [
  {
    type: 'cpu',
    title: 'CPU time',
    unit: 'ns',
    amount: 'cpu_seconds',
    value: ['cpu', 'nanoseconds'],
    colour: [45.0, 0.15, 0.72],
    none: 'What is selected did not run on a CPU in this time: it slept, waited, or was elsewhere.',
  },
  {
    type: 'page-faults',
    title: 'page faults',
    unit: 'faults',
    amount: 'page_faults',
    value: ['page_faults', 'count'],
    colour: [160.0, 0.12, 0.7],
    none: 'What is selected touched no new memory in this time, or page faults are not sampled: --events cpu,page-faults.',
  },
  {
    type: 'off-cpu',
    title: 'waiting',
    unit: 'ns',
    amount: 'off_cpu_seconds',
    value: ['off_cpu', 'nanoseconds'],
    colour: [250.0, 0.12, 0.7],
    none: 'What is selected did not wait in this time, or waits are not sampled: --events cpu,off-cpu. Threads that run a task are.',
  },
  {
    type: 'alloc',
    title: 'allocated memory',
    unit: 'bytes',
    amount: 'allocated_bytes',
    value: ['alloc_space', 'bytes'],
    colour: [95.0, 0.12, 0.74],
    none: 'What is selected allocated nothing in JVMs in this time, or allocations are not sampled: --events cpu,alloc. Status tells JVMs that cannot be.',
  },
  {
    type: 'wall',
    title: 'wall time',
    unit: 'ns',
    amount: 'wall_seconds',
    value: ['wall', 'nanoseconds'],
    colour: [300.0, 0.1, 0.7],
    none: 'What is selected neither ran nor, as far as waits are sampled, waited in this time: --events cpu,off-cpu.',
  },
];
