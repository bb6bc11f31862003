// Runs of jobs: applications of one job and user, the oldest first, with a line of what each used.
//
// In: `/runs`, over all that is kept, whatever the time that the page shows. Out: a section for each job: its runs as bars of
// CPU time with wall time as marks, and a table. A row leads to the run's stages, its last cell to the comparison with
// another run: the previous one, or the one that was chosen (`left` of the state).

import { bars } from '../bars.js';
import { h } from '../dom.js';
import { duration, instant, percent, safe, seconds } from '../format.js';
import { kept, table } from '../table.js';
import { nothing } from '../trouble.js';
import { FRESH } from '../state.js';

/** What to ask: all that is kept; a job or an application's name, where one is selected, alone. */
export const ask = (state) => {
  const chosen = ['app_run', 'app_name'].map((label) => state.labels[label] ?? []).find((values) => values.length === 1);
  return ['runs', chosen ? [['job', chosen[0]]] : []];
};

const cpuOf = (run) => run.exact?.cpu_seconds ?? run.sampled?.cpu_seconds ?? 0;
const job = (run) => JSON.stringify(run.job === null ? [run.app] : [run.job, run.user]);

/** Runs by job, those with most runs first; with an application selected, its job alone. */
export function jobs(runs, app) {
  const all = new Map();
  for (const run of runs) all.set(job(run), [...(all.get(job(run)) ?? []), run]);
  const found = [...all.values()].filter((of) => !app || of.some((run) => run.app === app));
  return found.sort((a, b) => b.length - a.length || Date.parse(b.at(-1).begun) - Date.parse(a.at(-1).begun));
}

/** The state that shows a run's own time: it may be long ago. */
export const timesOf = (run) => {
  const from = Date.parse(run.begun);
  const until = Math.max(from + 1000, Date.parse(run.ended ?? '') || from + 1000 * run.wall_seconds);
  return { range: `${from}..${until}`, from: '', until: '', live: '' };
};

/** What to show. */
export function show(answer, { state, store }) {
  const all = jobs(answer.runs, state.labels.app?.[0]);
  if (all.length === 0) return nothing('No run of an application is kept', answer.note ?? 'Once a Spark application has run on this node it is here.');
  const chosen = answer.runs.find((run) => run.app === state.left);
  return h('div', {},
    chosen ? h('p', {}, 'To be compared with: ', h('b', {}, name(chosen)), ', ', instant(Date.parse(chosen.begun)), ' · ', h('a', { href: store.href({ left: '' }) }, 'cancel')) : null,
    all.map((runs) => section(runs, chosen, { state, store })),
    answer.cut > 0 ? h('p', { class: 'muted' }, `${answer.cut} older runs are not shown.`) : null);
}

/** What executors reserved, where Spark told of them. */
const RESERVED = [
  { key: 'core_hours', label: 'Core-hours', value: (r) => r.reserved?.core_hours, hint: 'Cores that its executors had on all nodes, from when each was added until it was removed, as Spark reports it' },
  { key: 'gib_hours', label: 'GiB-hours', value: (r) => r.reserved?.gib_hours ?? undefined, hint: 'Memory reserved for its executors on all nodes' },
  { key: 'cost', label: 'Cost', value: (r) => r.reserved?.cost ?? undefined, hint: 'By the settings price-core-hour and price-gib-hour' },
];
const hours = (value) => (Number.isFinite(value) ? value.toFixed(value < 1 ? 4 : 2) : '–');

const name = (run) => safe(run.job ?? run.app, 90);

/** What tasks' threads waited for, as the command line has it: the two largest parts of their wall time, run delay among them. */
export function waiting(run) {
  const exact = run.tasks?.exact;
  if (!run.waited || !(exact?.wall_seconds > 0)) return [];
  const throttled = exact.throttled_seconds ?? 0;
  const parts = [...Object.entries(run.waited.by ?? {}), ['run delay', (exact.run_delay_seconds ?? 0) - throttled], ['throttled', throttled]];
  return parts.map(([of, s]) => ({ of, seconds: s, share: s / exact.wall_seconds })).filter(({ share }) => share >= 0.01)
    .sort((a, b) => b.seconds - a.seconds || (a.of < b.of ? -1 : 1)).slice(0, 2);
}

const waitingFor = (run) => waiting(run).map(({ of, share }) => `${safe(of, 40)} ${percent(share, 0)}`).join(', ');
const causes = (run) => h('span', { title: waiting(run).map(({ of, seconds: s }) => `${safe(of, 40)}: ${duration(s)}`).join('\n') }, waitingFor(run) || '–');

function section(runs, chosen, { state, store }) {
  const most = Math.max(...runs.map(cpuOf));
  const before = new Map(runs.map((run, at) => [run, runs[at - 1]]));
  const versus = (left, right) => store.href({ ...FRESH, view: 'versus', left: left.app, other: right.app });
  const compare = (run) => {
    if (chosen) return run === chosen ? 'chosen' : h('a', { href: versus(chosen, run) }, 'with the chosen one');
    const last = before.get(run);
    return h('span', {}, last ? h('a', { href: versus(last, run) }, 'with the previous run') : '', last ? ' · ' : '',
      runs.length > 1 ? h('a', { href: store.href({ left: run.app }) }, 'with another') : '–');
  };
  const columns = [
    { key: 'begun', label: 'Began', value: (r) => Date.parse(r.begun), show: (r) => instant(Date.parse(r.begun)) },
    { key: 'app', label: 'Application', text: true, value: (r) => r.app, show: (r) => h('span', {}, h('code', {}, safe(r.app, 60)), r.app_name && r.app_name !== r.job ? ` ${safe(r.app_name, 60)}` : '') },
    { key: 'wall', label: 'Took', value: (r) => r.wall_seconds, show: (r) => `${duration(r.wall_seconds)}${r.running ? ', running' : ''}` },
    { key: 'cpu', label: 'CPU, s', value: cpuOf, show: (r) => seconds(cpuOf(r)), bar: (r) => cpuOf(r) / (most || 1), hint: 'CPU time of all its threads on this node' },
    { key: 'tasks', label: 'In tasks, s', value: (r) => cpuOf(r.tasks), show: (r) => seconds(cpuOf(r.tasks)) },
    ...(runs.some((r) => r.waited) ? [{ key: 'waited', label: 'Waiting for', text: true, wide: true, value: waitingFor, show: causes, hint: 'The two largest parts of the tasks’ wall time in which their threads did not run' }] : []),
    ...RESERVED.filter(({ value }) => runs.some((r) => Number.isFinite(value(r)))).map((column) => ({ ...column, show: (r) => hours(column.value(r)) })),
    { key: 'stages', label: 'Stages', value: (r) => r.stages, show: (r) => String(r.stages) },
    { key: 'changed', label: 'Change', text: true, value: (r) => (r.changed ? 'changed' : ''), show: changed, hint: 'CPU time changed at this run (a false alarm in one job of a hundred)' },
    { key: 'compare', label: 'Compare', plain: true, text: true, value: () => '', show: compare },
  ];
  const first = runs[0];
  return h('section', { class: 'job' },
    h('h2', {}, name(first), first.user ? h('span', { class: 'muted' }, ` of ${safe(first.user, 40)}`) : ''),
    runs.length > 1 ? bars(runs.map((run) => ({ value: cpuOf(run), mark: run.wall_seconds, title: `${instant(Date.parse(run.begun))}: ${seconds(cpuOf(run))} s CPU, ${duration(run.wall_seconds)}${run.changed ? ', changed' : ''}`, on: Boolean(run.changed) })), `CPU time of ${runs.length} runs, the last ${seconds(cpuOf(runs.at(-1)))} s; marks are how long they took`) : null,
    table({
      caption: `Runs of ${name(first)}`, label: 'runs', columns, rows: runs, usual: '-begun', ...kept(state, store),
      link: (run) => store.href({ ...FRESH, ...timesOf(run), view: 'stages', labels: { app: [run.app], app_name: [], app_run: [] } }), none: '',
    }));
}

function changed(run) {
  if (!run.changed) return '';
  const { before_seconds: before, after_seconds: after } = run.changed;
  return `${after > before ? '+' : '−'}${percent(Math.abs(after / before - 1), 0)} from here on`;
}
