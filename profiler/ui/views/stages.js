// The stages of what is selected: what each used, exactly and by samples.
//
// In: `/stages`. Out: a table; a row leads to the stage's flame graph. CPU is the ledger's where there is one, else
// the samples'. `parts` is also what a single stage's strip is made of.

import { h } from '../dom.js';
import { count, duration, instant, percent, plusMinus, safe, seconds, times } from '../format.js';
import { kept, table } from '../table.js';
import { longer, nothing } from '../trouble.js';
import { FRESH, asked } from '../state.js';

/** What to ask. */
export const ask = (state) => ['stages', asked(state)];

/** CPU of one side; exact where it can be. */
const of = (side) => side?.exact?.cpu_seconds ?? side?.sampled?.cpu_seconds ?? 0;

/** A stage's CPU: own threads, helpers and Python workers. */
export function cpuOf(stage) {
  return of(stage) + of(stage.helpers) + of(stage.python);
}

/** Seconds of its blocked time in which its tasks waited for Python; 0 of an older daemon. */
export const pythonWait = (stage) => Math.min(stage.exact?.python_wait_seconds ?? 0, Math.max(0, stage.exact?.blocked_seconds ?? 0));

/** Where the time of a stage's tasks went: parts of their wall time; null without a ledger. */
export function parts(stage) {
  const e = stage.exact;
  if (!e) return null;
  const python = pythonWait(stage);
  const throttled = e.throttled_seconds ?? 0;
  return [
    ['user', 'on the CPU', e.user_seconds, 'The tasks’ own code, the JVM’s and native code included'],
    ['system', 'in the kernel', e.system_seconds, 'CPU time in system calls and page faults'],
    ['delay', 'run delay', e.run_delay_seconds - throttled, 'Ready to run, but other threads had the cores: neighbours, or too few cores'],
    ...(throttled > 0 ? [['throttled', 'throttled', throttled, 'Ready to run, but the container, or another cgroup of the task, had used up its quota of CPU time']] : []),
    ...(python > 0 ? [['python', 'waiting for Python', python, 'Asleep until a Python worker had read or sent something']] : []),
    ...blocked(stage, Math.max(0, e.blocked_seconds - python)),
  ];
}

/** Why tasks wait, in the order of the bar: values of the label `wait`. Waiting for Python is known exactly, and a part of its own. */
const WAITS = [
  ['shuffle', 'waiting for shuffle', 'Blocks of a shuffle, or of another executor’s cache'],
  ['storage', 'waiting for storage', 'A file, HDFS or an object store'],
  ['network', 'waiting for the network', 'Another peer, by a socket'],
  ['lock', 'waiting for locks', 'Monitors and locks of java.util.concurrent'],
  ['gc', 'waiting for GC', 'The JVM had stopped its threads'],
  ['sleep', 'asleep', 'The task’s code slept'],
];

/** The parts of a bar, in their order. */
const ORDER = ['user', 'system', 'delay', 'throttled', 'python', ...WAITS.map(([reason]) => reason), 'blocked'];

/** Blocked time by reason, and the rest of it: for other reasons, or not sampled. Estimates never exceed what is exact. */
function blocked(stage, seconds) {
  const by = stage.waited?.by ?? {};
  const told = WAITS.filter(([reason]) => by[reason] > 0);
  const all = told.reduce((sum, [reason]) => sum + by[reason], 0);
  const of = ([reason]) => by[reason] * Math.min(1, seconds / all);
  const rest = all > 0 ? ['blocked otherwise', 'For other reasons, or not sampled'] : ['blocked', 'Waiting for the network, a disk, a lock or another stage'];
  return [...told.map((wait) => [wait[0], wait[1], of(wait), wait[2]]), ['blocked', rest[0], Math.max(0, seconds - all), rest[1]]];
}

/** What the tasks of a stage, or a task, waited for, the longest first; empty where waits are not sampled. */
export function waitedFor(stage) {
  const by = Object.entries(stage.waited?.by ?? {}).sort(([, a], [, b]) => b - a);
  return by.map(([reason, s]) => `${reason} ${duration(s)}`).join(', ');
}

/** A bar of the parts. */
export function split(stage) {
  const all = parts(stage);
  const whole = stage.exact?.wall_seconds;
  if (!all || !(whole > 0)) return null;
  return h('span', { class: 'split', role: 'img', aria: { label: all.map(([, name, s]) => `${percent(s / whole, 0)} ${name}`).join(', ') }, title: all.map(([, name, s]) => `${name}: ${duration(s)} (${percent(s / whole)})`).join('\n') },
    all.map(([key, , s]) => h('i', { class: key, style: { 'flex-grow': String(100 * Math.max(0, s) / whole) } })));
}

/** A stage's name in words. */
export const title = (s) => `Stage ${s.stage}${s.stage_attempt && s.stage_attempt !== '0' ? ` (attempt ${s.stage_attempt})` : ''}`;

/** When it began: as Spark reports it, else as far as it was seen. Milliseconds. */
const began = (s) => Date.parse(s.spark?.submitted ?? s.first_seen);

/** How uneven a stage's tasks are: the longest over the median one. NaN where that is not known. */
export function skewOf({ durations }) {
  const { max_seconds: most, median_seconds: median } = durations ?? {};
  return median > 0 && Number.isFinite(most) ? most / median : NaN;
}

/** What to show. */
export function show(answer, { state, store, pages }) {
  const rows = answer.stages;
  const app = state.labels.app?.[0];
  if (rows.length === 0) {
    return nothing('No stage was seen in this range',
      answer.windows === 0 ? answer.note : 'No task ran here: only a driver, a JVM starting up, or a job that waits.',
      app ? h('a', { href: store.href({ view: 'flame', ...FRESH }) }, 'See the flame graph of everything it did') : 'Choose an application first.', longer(store));
  }
  const most = Math.max(...rows.map(cpuOf));
  const waited = rows.some((s) => s.waited);
  // A thread keeps its last task's name while it waits for the next one: the end that Spark reports is better.
  const took = (s) => (Date.parse(s.spark?.completed ?? s.last_seen) - Date.parse(s.spark?.completed ? s.spark.submitted : s.first_seen)) / 1000;
  const labels = (s) => ({ app: [s.app], stage: [s.stage], stage_attempt: s.stage_attempt ? [s.stage_attempt] : [] });
  const columns = [
    { key: 'stage', label: 'Stage', text: true, value: (s) => `${s.stage} ${s.stage_attempt ?? ''}`, show: (s) => title(s) },
    ...(rows.some((s) => s.spark?.name) ? [{ key: 'name', label: 'What it does', text: true, wide: true, value: (s) => s.spark?.description ?? s.spark?.name, show: (s) => pages.link(s, safe(s.spark?.description ?? s.spark?.name ?? '–', 70)) }] : []),
    ...(app ? [] : [{ key: 'app', label: 'Application', text: true, wide: true, value: (s) => s.app_name ?? s.app, show: (s) => safe(s.app_name ?? s.app, 40) }]),
    { key: 'cpu', label: 'CPU, s', value: cpuOf, show: (s) => seconds(cpuOf(s)), bar: (s) => cpuOf(s) / most, hint: 'CPU time of its tasks, of the threads that they start and of their Python workers' },
    ...(rows.some((s) => of(s.python) > 0) ? [{ key: 'python', label: 'In Python, s', value: (s) => of(s.python), show: (s) => seconds(of(s.python)), hint: 'CPU time of its Python workers: a part of the CPU' }] : []),
    { key: 'sampled', label: 'Sampling error', value: (s) => s.sampled.samples, show: (s) => plusMinus(s.sampled.samples) || 'none', hint: 'How exact its flame graph is' },
    { key: 'split', label: 'Where the tasks’ time went', plain: true, text: true, value: () => '', show: (s) => split(s) ?? '–' },
    { key: 'wall', label: 'Task time, s', value: (s) => s.exact?.wall_seconds, show: (s) => seconds(s.exact?.wall_seconds), hint: 'Sum over its tasks' },
    { key: 'delay', label: 'Run delay, s', value: (s) => s.exact?.run_delay_seconds, show: (s) => seconds(s.exact?.run_delay_seconds), hint: 'Ready to run, and waiting for a CPU' },
    { key: 'blocked', label: 'Blocked, s', value: (s) => s.exact?.blocked_seconds, show: (s) => seconds(s.exact ? Math.max(0, s.exact.blocked_seconds) : NaN), hint: 'Waiting for anything but a CPU' },
    ...(rows.some((s) => pythonWait(s) > 0) ? [{ key: 'pywait', label: 'Waiting for Python, s', value: pythonWait, show: (s) => seconds(s.exact ? pythonWait(s) : NaN), hint: 'Asleep until a Python worker had read or sent something: a part of the blocked time' }] : []),
    ...(rows.some((s) => s.exact?.paused_seconds > 0) ? [{ key: 'paused', label: 'In pauses, s', value: (s) => s.exact?.paused_seconds, show: (s) => seconds(s.exact?.paused_seconds), hint: 'The part of the tasks’ time in which their JVMs stood still: garbage collections and other safepoints' }] : []),
    ...(waited ? [{ key: 'waited', label: 'Waiting for', text: true, wide: true, value: waitedFor, show: (s) => waitedFor(s) || '–', hint: 'Parts of the blocked time, by samples of waits' }] : []),
    { key: 'tasks', label: 'Tasks', value: (s) => s.tasks, show: (s) => h('a', { href: store.href({ ...FRESH, view: 'tasks', labels: labels(s) }) }, count(s.tasks)) },
    ...(rows.some((s) => s.spark?.sql_id != null) ? [{ key: 'query', label: 'Query', value: (s) => s.spark?.sql_id, show: (s) => (s.spark?.sql_id == null ? '–' : h('a', { href: store.href({ ...FRESH, view: 'queries', execution: String(s.spark.sql_id), labels: { app: [s.app] } }), title: safe(s.spark.sql_description ?? '', 200) }, String(s.spark.sql_id))) }] : []),
    { key: 'took', label: 'Took', value: took, show: (s) => duration(took(s)), hint: 'As Spark reports it; else from the start of its first task to the end of its last, as far as they lie in this range' },
    { key: 'first', label: 'Began', value: began, show: (s) => instant(began(s)), hint: 'As Spark reports it; else when its first task was first seen in this range' },
    { key: 'skew', label: 'Skew', value: skewOf, show: (s) => times(skewOf(s)), hint: 'The longest task’s time over the median one’s' },
    { key: 'slow', label: 'Slow tasks', plain: true, text: true, value: () => '', show: (s) => (s.tasks >= 4 && s.stage !== 'unknown' ? h('a', { href: store.href({ ...FRESH, view: 'slow', labels: labels(s) }) }, 'slow tasks') : '') },
  ];
  return h('div', {}, table({
    caption: 'Stages', label: 'stages', columns, rows, usual: 'stage', ...kept(state, store),
    link: (s) => store.href({ ...FRESH, view: 'flame', labels: labels(s) }),
    none: '',
  }), splitLegend(rows), app ? pages.links(app) : null);
}

/** What the parts' colours mean: of all parts that a row has, in the order of the bar. */
export function splitLegend(rows) {
  const always = ['user', 'system', 'delay', 'blocked'];
  const known = new Map();
  for (const [key, name, s] of rows.flatMap((row) => parts(row) ?? [])) {
    if (s > 0 || always.includes(key)) known.set(key, name);
  }
  const names = ORDER.filter((key) => known.has(key)).map((key) => [key, known.get(key)]);
  return names.length === 0 ? null : h('ul', { class: 'legend split-legend' }, names.map(([key, name]) => h('li', {}, h('i', { class: key }), name)));
}
