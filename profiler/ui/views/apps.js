// The first view: applications, and the node as a whole.
//
// In: `/apps`. Out: a table; a row leads to the application's stages. Where there is none, what to do.

import { h } from '../dom.js';
import { count, duration, instant, plusMinus, safe, seconds } from '../format.js';
import { kept, table } from '../table.js';
import { longer, nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';

/** What to ask. */
export const ask = (state) => ['apps', asked(state)];

/** What to show. */
export function show(answer, { state, store }) {
  const { apps } = answer;
  const node = store.href({ view: 'processes', ...FRESH, labels: null });
  if (apps.length === 0) {
    return nothing('No Spark application in this time',
      answer.windows === 0 ? answer.note : 'The node was sampled, and nothing on it was Spark.',
      'Start a Spark job on this machine: nothing is added to it, no flag, no jar. Ten seconds later it is here; with Live on, by itself.',
      h('span', {}, 'If one ran earlier, choose a longer time. Or see ', h('a', { href: node }, 'all processes of this node'), '.'), longer(store));
  }
  const most = Math.max(...apps.map((a) => a.cpu_seconds));
  const columns = [
    { key: 'name', label: 'Application', text: true, value: (a) => a.name ?? a.id, show: (a) => safe(a.name ?? a.id, 90) },
    { key: 'id', label: 'Id', text: true, value: (a) => a.id, show: (a) => h('code', {}, safe(a.id, 60)) },
    { key: 'cpu', label: 'CPU, s', value: (a) => a.cpu_seconds, show: (a) => seconds(a.cpu_seconds), bar: (a) => a.cpu_seconds / most, hint: 'CPU time of all its processes on this node, by samples' },
    { key: 'error', label: 'Error', value: (a) => a.sampling_error, show: (a) => plusMinus(a.samples) },
    { key: 'executors', label: 'Executors', value: (a) => a.executors, show: (a) => count(a.executors) },
    { key: 'user', label: 'User', text: true, value: (a) => a.user, show: (a) => safe(a.user ?? '–', 40) },
    { key: 'deploy', label: 'Runs on', text: true, value: (a) => a.deploy, show: (a) => safe(a.deploy ?? '–', 40) },
    { key: 'first', label: 'First seen', value: (a) => Date.parse(a.first_seen), show: (a) => instant(Date.parse(a.first_seen)) },
    { key: 'length', label: 'Seen for', value: (a) => Date.parse(a.last_seen) - Date.parse(a.first_seen), show: (a) => duration((Date.parse(a.last_seen) - Date.parse(a.first_seen)) / 1000) },
  ];
  return h('div', {}, table({
    caption: 'Applications', label: 'applications', columns, rows: apps, usual: '-cpu', ...kept(state, store),
    link: (a) => store.href({ ...FRESH, view: 'stages', labels: { app: [a.id] } }),
    none: '',
  }), h('p', { class: 'muted aside' }, 'Also: ', h('a', { href: node }, 'every process of this node'), ', Spark’s or not.'));
}
