// The tasks of what is selected: where the time of each went, and how evenly.
//
// In: `/tasks`. Out: quantiles over the tasks, as Spark's own page of a stage has them, and a table; a row leads to the
// task's flame graph. The daemon cuts long answers: what is left out is said, and a part has no quantiles.

import { h } from '../dom.js';
import { count, duration, instant, percent, plusMinus, safe, seconds, times } from '../format.js';
import { kept, table } from '../table.js';
import { nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';
import * as stages from './stages.js';

/** Tasks that are asked for. */
const MOST = 10_000;
const QUANTILES = [['Min', 0], ['25 %', 0.25], ['Median', 0.5], ['75 %', 0.75], ['Max', 1]];

/** What to ask: those that took longest, where there are too many. */
export const ask = (state) => ['tasks', [...asked(state), ['sort', 'wall'], ['limit', String(MOST)]]];

const wall = (t) => t.exact?.wall_seconds;
const exact = (t, of) => (t.exact ? of(t.exact) : undefined);
const blocked = (t) => exact(t, (e) => Math.max(0, e.blocked_seconds));

/** What is told of tasks, for quantiles and columns: a key, a name, a value in seconds, what it means. */
const FIGURES = [
  ['wall', 'Task time', wall, 'From its start to its end, as far as it lies in this range'],
  ['cpu', 'CPU', stages.cpuOf, 'Of its own thread, of the threads that it starts and of its Python worker'],
  ['delay', 'Run delay', (t) => exact(t, (e) => e.run_delay_seconds), 'Ready to run, but other threads had the cores, or its cgroup’s quota was used up'],
  ['blocked', 'Blocked', blocked, 'Waiting for anything but a CPU: network, disk, a lock, its Python worker'],
  ['paused', 'In pauses', (t) => exact(t, (e) => e.paused_seconds), 'The part of its time in which its JVM stood still: garbage collections and other safepoints'],
];

/** When a task began: as Spark reports it, else as far as it was seen. Milliseconds. */
export const began = (t) => Date.parse(t.spark?.launched ?? t.first_seen);

/** The value at a place, 0 to 1, of numbers in order: the nearest one. */
export const quantile = (sorted, at) => sorted[Math.round(at * (sorted.length - 1))];

/** Quantiles of each figure that the tasks have. */
export function quantiles(tasks) {
  return FIGURES.flatMap(([key, label, of, hint]) => {
    const known = tasks.map(of).filter(Number.isFinite).sort((a, b) => a - b);
    if (known.length === 0 || (key === 'paused' && known[known.length - 1] === 0)) return [];
    return [{ key, label, hint, at: QUANTILES.map(([, at]) => quantile(known, at)) }];
  });
}

function spread(tasks) {
  const rows = quantiles(tasks);
  if (tasks.length < 2 || rows.length === 0) return null;
  return h('section', { class: 'scroll spread' }, h('table', {}, h('caption', { class: 'quiet' }, 'How evenly the tasks share the work'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col', class: 'text' }, `Of ${count(tasks.length)} tasks`), QUANTILES.map(([name]) => h('th', { scope: 'col', class: 'number' }, name)), h('th', { scope: 'col', class: 'number', title: 'The largest over the median' }, 'Skew'))),
    h('tbody', {}, rows.map((row) => h('tr', {}, h('th', { scope: 'row', class: 'text', title: row.hint }, row.label), row.at.map((s) => h('td', { class: 'number' }, duration(s))), h('td', { class: 'number' }, times(row.at[4] / row.at[2])))))));
}

/** What to show. */
export function show(answer, { state, store }) {
  const rows = answer.tasks;
  if (rows.length === 0) {
    return nothing('No task was seen in this range', answer.windows === 0 ? answer.note : 'No task ran here: only a driver, a JVM starting up, or a job that waits.',
      h('span', {}, 'Choose a stage in the ', h('a', { href: store.href({ view: 'stages', ...FRESH }) }, 'table of stages'), '.'));
  }
  const most = Math.max(...rows.map((t) => wall(t) ?? 0)) || 1;
  const several = new Set(rows.map((t) => `${t.app} ${t.stage} ${t.stage_attempt}`)).size > 1;
  const waits = rows.some((t) => t.waited);
  const columns = [
    { key: 'index', label: 'Task', text: true, value: (t) => t.task_index, show: (t) => `${t.task_index ?? 'unknown'}${t.task_attempt && t.task_attempt !== '0' ? ` (attempt ${t.task_attempt})` : ''}` },
    ...(several ? [{ key: 'stage', label: 'Stage', text: true, value: (t) => t.stage, show: (t) => stages.title(t) }] : []),
    { key: 'tid', label: 'TID', text: true, value: (t) => t.task, show: (t) => t.task ?? '–', hint: 'Spark’s id of the attempt' },
    { key: 'executor', label: 'Executor', text: true, value: (t) => t.executor, show: (t) => safe(t.executor ?? '–', 30) },
    ...FIGURES.filter(([key, , of]) => key !== 'paused' || rows.some((t) => of(t) > 0)).map(([key, label, of, hint]) => ({ key, label: `${label}, s`, value: of, show: (t) => seconds(of(t)), hint, ...(key === 'wall' ? { bar: (t) => (wall(t) ?? 0) / most } : {}) })),
    { key: 'split', label: 'Where its time went', plain: true, text: true, value: () => '', show: (t) => stages.split(t) ?? '–' },
    ...(waits ? [{ key: 'waited', label: 'Waiting for', text: true, wide: true, value: stages.waitedFor, show: (t) => stages.waitedFor(t) || '–', hint: 'Parts of the blocked time, by samples of waits' }] : []),
    { key: 'sampled', label: 'Sampling error', value: (t) => t.sampled.samples, show: (t) => plusMinus(t.sampled.samples) || 'none', hint: 'How exact its flame graph is' },
    ...(rows.some((t) => t.spark?.status) ? [{ key: 'status', label: 'Status in Spark', text: true, value: (t) => t.spark?.status, show: (t) => safe(t.spark?.status ?? '–', 30) }] : []),
    { key: 'began', label: 'Began', value: began, show: (t) => instant(began(t)), hint: 'As Spark reports it; else when it was first seen in this range' },
  ];
  const cut = answer.cut > 0 ? h('p', { class: 'note' }, `The ${count(rows.length)} that took longest, of ${count(answer.count)}. There are no quantiles of a part: choose a stage, or a shorter range.`) : null;
  return h('div', {}, cut ?? spread(rows), table({
    caption: 'Tasks', label: 'tasks', columns, rows, usual: '-wall', ...kept(state, store),
    link: (t) => (t.task ? store.href({ ...FRESH, view: 'flame', labels: { app: [t.app], stage: [t.stage], task: [t.task] } }) : null),
    none: '',
  }), stages.splitLegend(rows), share(rows));
}

/** How much of the tasks' time was on a CPU. */
function share(rows) {
  const sum = (of) => rows.reduce((a, t) => a + (of(t) || 0), 0);
  const whole = sum(wall);
  return whole > 0 ? h('p', { class: 'muted aside' }, `${duration(whole)} of task time in all; CPU time is ${percent(sum(stages.cpuOf) / whole, 0)} of that.`) : null;
}
