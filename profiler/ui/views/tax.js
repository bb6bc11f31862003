// How the CPU time of JVMs splits: the tasks' own work, and what comes with it (collector, compilers, shuffle, Spark's own threads).
//
// In: `/tax`. Out: a table of classes, one of JVMs, and what runs beside them; a row leads to the flame graph.

import { h } from '../dom.js';
import { duration, percent, plusMinus, safe, seconds } from '../format.js';
import { kept, table } from '../table.js';
import { nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';

/** What to ask. */
export const ask = (state) => ['tax', asked(state)];

const cpu = (row) => row.cpu_seconds ?? 0;

/** Columns of CPU time, and of its parts in user mode and the kernel. */
function figures(rows, whole) {
  const most = Math.max(...rows.map(cpu)) || 1;
  return [
    { key: 'cpu', label: 'CPU, s', value: cpu, show: (r) => seconds(cpu(r)), bar: (r) => cpu(r) / most },
    { key: 'share', label: '%', value: (r) => cpu(r) / whole, show: (r) => percent(cpu(r) / whole), hint: 'Of all JVMs selected' },
    { key: 'system', label: 'In the kernel, s', value: (r) => r.system_seconds, show: (r) => seconds(r.system_seconds ?? NaN) },
    { key: 'samples', label: 'Sampling error', value: (r) => r.samples, show: (r) => plusMinus(r.samples) || 'none', hint: 'How exact its flame graph is; CPU time is exact where the kernel keeps accounts' },
  ];
}

/** What to show. */
export function show(answer, { state, store }) {
  const classes = answer.classes.filter((c) => cpu(c) > 0 || c.samples > 0);
  const whole = cpu(answer.total) || 1;
  if (classes.length === 0) return nothing('No JVM ran in this range', answer.windows === 0 ? answer.note : 'Only JVMs pay the tax: choose another application, or a longer range.');
  const flame = (labels) => store.href({ ...FRESH, view: 'flame', labels });
  const keep = { ...kept(state, store), usual: '-cpu', none: '' };
  const name = (c) => (c.thread_class ?? 'no class').replaceAll('-', ' ');
  const jvm = (p) => [p.app_name ?? p.app ?? p.process, p.role, p.executor && `executor ${p.executor}`].filter(Boolean).map((t) => safe(t, 60)).join(' · ');
  const jvms = answer.processes.map((p) => ({ ...p, ...p.total }));
  const { stage } = answer;
  return h('div', {},
    stage ? h('p', {}, `${stage.tasks} tasks used ${duration(stage.cpu_seconds)} of CPU; below is everything their executors did while they ran.`) : null,
    table({ ...keep, caption: 'CPU of JVMs by class of thread', label: 'classes', rows: classes, link: (c) => flame({ thread_class: [c.thread_class ?? ''] }),
      columns: [{ key: 'class', label: 'Class', text: true, value: name, show: name }, ...figures(classes, whole)] }),
    table({ ...keep, caption: 'JVMs', label: 'JVMs', rows: jvms, link: (p) => flame({ pid: [String(p.pid)] }),
      columns: [{ key: 'jvm', label: 'JVM', text: true, wide: true, value: jvm, show: jvm }, { key: 'pid', label: 'Pid', value: (p) => p.pid, show: (p) => h('code', {}, String(p.pid ?? '–')) }, ...figures(jvms, whole)] }),
    answer.beside.length > 0 ? h('p', { class: 'muted aside' }, 'Not JVMs, and in none of these sums: ', answer.beside.slice(0, 5).map((p) => `${safe(p.process ?? p.role ?? '–', 40)} ${duration(cpu(p))}`).join(', ')) : null);
}
