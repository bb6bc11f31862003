// What views show of an answer, as text of their elements.

import assert from 'node:assert/strict';
import test from 'node:test';
import { duration, instant } from '../format.js';
import { Strip } from '../strip.js';
import { atOnce, axis } from '../timeline.js';
import { ticks } from '../scale.js';
import { kindOf } from '../units.js';
import * as runs from '../views/runs.js';
import * as stages from '../views/stages.js';
import * as tasks from '../views/tasks.js';
import * as versus from '../views/versus.js';
import { parse } from '../state.js';
import { cells, install } from './document.js';

install();

const store = { state: parse(''), set() {}, href: () => '#' };
const pages = { link: (_, text) => text, links: () => null };
const exact = { cpu_seconds: 4, user_seconds: 3, system_seconds: 1, wall_seconds: 10, run_delay_seconds: 2, throttled_seconds: 0, blocked_seconds: 4, paused_seconds: 0, python_wait_seconds: 0 };
const sampled = { samples: 400, cpu_seconds: 4 };
const stage = (number, more) => ({ app: 'a', stage: number, stage_attempt: '0', tasks: 8, exact, sampled, first_seen: '2026-11-21T10:00:00Z', last_seen: '2026-11-21T10:00:09Z', ...more });

test('stages can be sorted by skew, where the daemon tells it', () => {
  const uneven = { durations: { median_seconds: 2, max_seconds: 6.8 } };
  assert.equal(stages.skewOf(uneven), 3.4);
  assert.ok([{}, { durations: null }, { durations: { median_seconds: 0, max_seconds: 0 } }].every((s) => Number.isNaN(stages.skewOf(s))));
  const answer = { stages: [stage('1'), stage('2', uneven), stage('3', { durations: { median_seconds: 1, max_seconds: 20 } })] };
  const { head, rows } = cells(stages.show(answer, { state: parse('#app=a&ts=-skew'), store, pages }));
  const at = head.indexOf('Skew');
  assert.deepEqual(rows.map((row) => [row[0], row[at]]), [['Stage 3', '20 ×'], ['Stage 2', '3.4 ×'], ['Stage 1', '–']]);
  assert.deepEqual(rows.map((row) => row[head.indexOf('Slow tasks')]), ['slow tasks', 'slow tasks', 'slow tasks']);
  assert.equal(rows[0][head.indexOf('Run delay, s')], '2.00');
  assert.ok(!head.some((name) => /Waited/.test(name)), head.join());
});

test('blocked time is shown by reason, and never more of it than there is', () => {
  const of = (more) => stages.parts(stage('1', more)).map(([key, name, seconds]) => [key, name, seconds]).slice(3);
  assert.deepEqual(of({}), [['blocked', 'blocked', 4]]);
  assert.deepEqual(of({ waited: { by: { lock: 1, shuffle: 2.5, idle: 0.2, other: 0.1 } } }), [
    ['shuffle', 'waiting for shuffle', 2.5], ['lock', 'waiting for locks', 1], ['blocked', 'blocked otherwise', 0.5]]);
  // Waits are estimated, what a Python worker is waited for is not.
  const python = { exact: { ...exact, python_wait_seconds: 3 }, waited: { by: { python: 3.2, gc: 2 } } };
  assert.deepEqual(of(python), [['python', 'waiting for Python', 3], ['gc', 'waiting for GC', 1], ['blocked', 'blocked otherwise', 0]]);
  const legend = (rows) => stages.splitLegend(rows)?.textContent;
  assert.equal(legend([stage('1', {}), stage('2', python)]), 'on the CPUin the kernelrun delaywaiting for Pythonwaiting for GCblocked otherwise');
  assert.equal(legend([stage('1', { exact: null })]), undefined);
});

test('a task began when Spark launched it, though the range begins later', () => {
  const first_seen = '2026-11-21T10:00:00Z';
  const launched = '2026-11-21T09:58:30Z';
  assert.equal(tasks.began({ first_seen, spark: { launched } }), Date.parse(launched));
  assert.equal(tasks.began({ first_seen, spark: null }), Date.parse(first_seen));
  const task = (index, spark) => ({ app: 'a', stage: '1', stage_attempt: '0', task_index: index, task: index, exact, sampled, first_seen, spark });
  const { head, rows } = cells(tasks.show({ cut: 1, count: 3, tasks: [task('0', { launched }), task('1', null)] }, { state: parse(''), store }));
  assert.deepEqual(rows.map((row) => row[head.indexOf('Began')]), [launched, first_seen].map((at) => instant(Date.parse(at))));
  assert.ok(head.includes('Run delay, s'));
});

test('a run says what its tasks waited for most', () => {
  const run = { tasks: { exact }, waited: { seconds: 4, by: { shuffle: 3, gc: 0.05, lock: 0.95 } } };
  assert.deepEqual(runs.waiting(run).map((part) => [part.of, part.share]), [['shuffle', 0.3], ['run delay', 0.2]]);
  const throttled = { ...run, tasks: { exact: { ...exact, throttled_seconds: 1.9 } } };
  assert.deepEqual(runs.waiting(throttled).map((part) => part.of), ['shuffle', 'throttled']);
  assert.deepEqual([runs.waiting({ ...run, waited: null }), runs.waiting({ ...run, tasks: { exact: null } })], [[], []]);
  const row = { app: 'a-1', job: 'etl', app_name: 'etl', user: 'ann', begun: '2026-11-20T00:00:00Z', wall_seconds: 60, exact, sampled, stages: 3, changed: null, ...run };
  const { head, rows } = cells(runs.show({ runs: [row], cut: 0 }, { state: parse(''), store }));
  assert.equal(rows[0][head.indexOf('Waiting for')], 'shuffle 30 %, run delay 20 %');
});

test('two runs say what each query and stage waits more for', () => {
  const row = { waited: { gc: [0.5, 0.6], shuffle: [1, 3], lock: [2, 1.5] } };
  assert.equal(versus.waiting(row), `shuffle +${duration(2)}`);
  assert.equal(versus.waiting({ waited: { lock: [2, 1.5] } }), `lock ${duration(-0.5)}`);
  assert.equal(versus.waiting({ waited: {} }) + versus.waiting({}), '');
  const side = { app: 'a', app_name: 'etl', begun: null, stages: 2, unnamed_stages: 0, range: { from: '2026-11-20T00:00:00Z', until: '2026-11-20T01:00:00Z' } };
  const cpu = { left_seconds: 1, right_seconds: 2, difference: 1, difference_error: 1, significant: false };
  const none = { rows: [], cut: 0 };
  const answer = { left: side, right: side, whole: { cpu, ...row }, significant: false, queries: none, operators: none, methods: none,
    stages: { cut: 0, rows: [{ name: 'save', only: null, left_stage: '1', right_stage: '2', cpu, ...row }] } };
  const page = versus.show(answer, { state: parse(''), store });
  const whole = page.querySelector('.whole');
  assert.deepEqual(whole.querySelector('tbody').children.map((line) => line.children[0].textContent), ['CPU time of tasks', 'waiting, sampled: shuffle', 'waiting, sampled: lock', 'waiting, sampled: gc']);
  assert.match(whole.textContent, /, within error/);
  assert.match(page.textContent, /No significant difference/);
  const { head, rows } = cells({ querySelector: () => page.querySelectorAll('table')[1] });
  assert.equal(rows[0][head.indexOf('Waiting')], `shuffle +${duration(2)}`);
});

test('an axis has two or three round numbers', () => {
  for (let most = 0.013; most < 5e6; most *= 1.07) {
    for (const unit of ['cores', 'bytes']) {
      const all = ticks(most, unit);
      assert.ok(all.length === 2 || all.length === 3, `${most}: ${all.map((t) => t.text)}`);
      assert.ok(all.every((t) => t.value > 0 && t.value <= most * 1.000001));
    }
  }
  assert.deepEqual(ticks(3.4, 'cores').map((t) => t.text), ['1 core', '2 cores', '3 cores']);
  assert.deepEqual(ticks(0.75, 'cores').map((t) => t.text), ['0.2 cores', '0.4 cores', '0.6 cores']);
  assert.deepEqual(ticks(45 * 1024 ** 2, 'bytes', '/s').map((t) => t.text), ['20 MiB/s', '40 MiB/s']);
  assert.deepEqual([ticks(0, 'cores'), ticks(NaN, 'cores')], [[], []]);
  const [low, high] = axis({ kind: kindOf({ type: 'page-faults' }), most: 50_000, step: 10_000 });
  assert.deepEqual([low, high], [{ at: 0.4, text: '2,000 faults/s' }, { at: 0.8, text: '4,000 faults/s' }]);
  assert.deepEqual(['cpu', 'off-cpu', 'block-io'].map((type) => atOnce({ type })), ['cores', 'threads', 'requests']);
});

test('what cannot be asked for leaves no chart of what was asked before', async () => {
  const range = { from: new Date(0).toISOString(), until: new Date(40_000).toISOString() };
  const series = { step_seconds: 10, range, series: [{ labels: { app_name: 'etl' }, points: [{ time: range.from, cpu_seconds: 3 }] }] };
  const answer = (status, body) => ({ ok: status === 200, status, json: async () => body });
  globalThis.fetch = async (url) => (url.searchParams.get('app') === 'nobody' ? answer(404, { error: { code: 'unknown_app', message: 'There is no app `nobody`.' } }) : answer(200, series));
  globalThis.devicePixelRatio = 1;
  const here = { ...store };
  const strip = new Strip({ store: here, names: {}, pages, known() {} });
  await strip.follow(here.state);
  assert.equal(strip.timeline.legend.textContent, 'etl');
  here.state = parse('#app=nobody');
  await strip.follow(here.state);
  assert.equal(strip.timeline.legend.textContent, '');
  assert.ok(strip.timeline.data === null && strip.timeline.canvas.cleared && !strip.answer);
  assert.match(strip.note.textContent, /^No timeline: There is no app `nobody`/);
  // And the chart is there again with the next answer.
  here.state = parse('');
  await strip.follow(here.state);
  assert.deepEqual([strip.timeline.legend.textContent, strip.note.textContent], ['etl', '']);
});
