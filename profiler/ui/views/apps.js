// The first view: applications, and the node as a whole.
//
// In: `/apps`, and `/sql` once that is there. Out: a table; a row leads to the application's stages. Below it the
// queries of all of them that took longest, each leading to its plan. Where there is no application, what to do.

import { get } from '../api.js';
import { h } from '../dom.js';
import { count, duration, instant, plusMinus, safe, seconds } from '../format.js';
import { kept, renew, sorted, table } from '../table.js';
import { longer, nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';
import { leads, length } from './queries.js';

/** Queries that are shown, and of how many with the most CPU time they are the longest. */
const SHOWN = 5;
const AMONG = 200;

/** The queries below an answer's applications, once they are there. */
let last = { of: null, queries: null };

/** What to ask. */
export const ask = (state) => ['apps', asked(state)];

/** What to show. */
export function show(answer, { state, store }) {
  const { apps } = answer;
  const node = store.href({ view: 'processes', ...FRESH, labels: null });
  if (apps.length === 0) {
    return nothing('No Spark application in this range',
      answer.windows === 0 ? answer.note : 'The node was sampled, and nothing on it was Spark.',
      'Start a Spark job on this machine, as you always do: no flag, no jar. Ten seconds later it is here; with Live on, without a refresh.',
      h('span', {}, 'If one ran earlier, choose a longer range. Or see ', h('a', { href: node }, 'all processes of this node'), '.'), longer(store));
  }
  const most = Math.max(...apps.map((a) => a.cpu_seconds));
  const columns = [
    { key: 'name', label: 'Application', text: true, wide: true, value: (a) => a.name ?? a.id, show: (a) => safe(a.name ?? a.id, 90) },
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
  }), longest(answer, state, store), h('p', { class: 'muted aside' }, 'Also: ', h('a', { href: node }, 'every process of this node'), ', Spark’s or not.'));
}

/** The queries that took longest. They are asked for when the applications are there, which wait for nobody. */
function longest(answer, state, store) {
  const place = h('div');
  const fill = () => { if (last.of === answer && last.queries?.length > 0) renew(place, () => place.replaceChildren(queries(last.queries, store))); };
  if (last.of !== answer) {
    last = { of: answer, queries: null };
    get('sql', [...asked(state), ['limit', String(AMONG)]])
      .then((got) => { if (last.of === answer) last.queries = got.queries.filter((q) => q.execution !== null && length(q) > 0); })
      // What is wrong is told where it is asked for: in the view of queries.
      .catch(() => {})
      .finally(() => document.querySelector('[data-longest]')?.dispatchEvent(new Event('told')));
  }
  place.dataset.longest = '';
  place.addEventListener('told', fill);
  fill();
  return place;
}

function queries(all, store) {
  const most = Math.max(...all.map(length));
  const columns = [
    { key: 'name', label: 'Query', plain: true, text: true, wide: true, value: (q) => q.description, show: (q) => safe(q.description ?? `Query ${q.execution}`, 90) },
    { key: 'app', label: 'Application', plain: true, text: true, wide: true, value: (q) => q.app, show: (q) => safe(q.app_name ?? q.app ?? '–', 60) },
    { key: 'took', label: 'Took', plain: true, value: length, show: (q) => duration(length(q)), bar: (q) => length(q) / most },
    { key: 'cpu', label: 'CPU, s', plain: true, value: (q) => q.cpu_seconds, show: (q) => seconds(q.cpu_seconds), hint: 'CPU time of its tasks on this node, by samples' },
    { key: 'began', label: 'Began', plain: true, value: (q) => Date.parse(q.begun), show: (q) => instant(Date.parse(q.begun)) },
  ];
  const rows = sorted(all, columns, '-took').slice(0, SHOWN);
  return table({ caption: 'Longest queries', label: 'longest queries', columns, rows, usual: '-took', search: '', set: () => {}, link: (q) => leads(q, store), none: '', short: true });
}
