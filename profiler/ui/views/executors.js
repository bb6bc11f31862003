// Executors of what is selected, and who else runs on the node.
//
// In: `/executors` or `/processes`. Out: a table; a row leads to a flame graph.

import { h } from '../dom.js';
import { instant, plusMinus, safe, seconds } from '../format.js';
import { kept, table } from '../table.js';
import { nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';

/** What to ask. */
export const ask = (state) => [state.view, asked(state)];

const cpu = (rows) => {
  const most = Math.max(...rows.map((r) => r.cpu_seconds ?? 0));
  return [
    { key: 'cpu', label: 'CPU, s', value: (r) => r.cpu_seconds, show: (r) => seconds(r.cpu_seconds), bar: (r) => r.cpu_seconds / most },
    { key: 'error', label: 'Error', value: (r) => r.sampling_error, show: (r) => plusMinus(r.samples) },
  ];
};

/** Executors. */
export function show(answer, { state, store }) {
  const rows = answer.executors;
  if (rows.length === 0) {
    return nothing('No executor was seen in this range', answer.windows === 0 ? answer.note : 'This application’s executors run on other nodes, or it has none. Each daemon answers for its own node.');
  }
  const columns = [
    { key: 'executor', label: 'Executor', text: true, value: (e) => e.executor, show: (e) => safe(e.executor, 30) },
    { key: 'role', label: 'Role', text: true, value: (e) => e.role },
    ...(state.labels.app ? [] : [{ key: 'app', label: 'Application', text: true, wide: true, value: (e) => e.app_name ?? e.app, show: (e) => safe(e.app_name ?? e.app, 40) }]),
    ...cpu(rows),
    { key: 'cores', label: 'Cores', value: (e) => e.cores, show: (e) => String(e.cores ?? '–') },
    { key: 'jvm', label: 'JVM', text: true, value: (e) => e.jvm?.version, show: (e) => safe(e.jvm?.version ?? '–', 30) },
    { key: 'names', label: 'Names from', text: true, value: (e) => e.jvm?.names, show: (e) => h('span', { title: safe(e.jvm?.names_detail ?? '', 300) }, safe(e.jvm?.names ?? '–', 30)) },
    { key: 'node', label: 'Node', text: true, value: (e) => e.node, show: (e) => safe(e.node ?? '–', 40) },
    { key: 'pids', label: 'Pids', text: true, value: (e) => (e.pids ?? []).join(' '), show: (e) => h('code', {}, (e.pids ?? []).slice(0, 4).join(' ') + ((e.pids ?? []).length > 4 ? ' …' : '')) },
    { key: 'first', label: 'First seen', value: (e) => Date.parse(e.first_seen), show: (e) => instant(Date.parse(e.first_seen)) },
  ];
  return table({
    caption: 'Executors', label: 'executors', columns, rows, usual: '-cpu', ...kept(state, store),
    link: (e) => store.href({ ...FRESH, view: 'flame', labels: { app: [e.app], executor: [e.executor], role: [e.role] } }),
    none: '',
  });
}

/** All processes of the node. */
export function showProcesses(answer, { state, store }) {
  const rows = answer.processes;
  if (rows.length === 0) return nothing('Nothing was sampled in this range', answer.note ?? '');
  const columns = [
    { key: 'program', label: 'Program', text: true, wide: true, value: (p) => p.program || p.labels.process, show: (p) => safe(p.program || p.labels.process || '–', 60) },
    { key: 'pid', label: 'Pid', value: (p) => p.pid, show: (p) => h('code', {}, String(p.pid)) },
    ...cpu(rows),
    { key: 'role', label: 'Role', text: true, value: (p) => p.labels.role, show: (p) => safe(p.labels.role ?? '–', 30) },
    { key: 'app', label: 'Application', text: true, wide: true, value: (p) => p.labels.app_name ?? p.labels.app, show: (p) => safe(p.labels.app_name ?? p.labels.app ?? '–', 50) },
    { key: 'user', label: 'User', text: true, value: (p) => p.labels.user, show: (p) => safe(p.labels.user ?? '–', 30) },
  ];
  return table({
    caption: 'Processes of this node', label: 'processes', columns, rows, usual: '-cpu', ...kept(state, store),
    link: (p) => store.href({ ...FRESH, view: 'flame', labels: { pid: [String(p.pid)] } }),
    none: '',
  });
}
