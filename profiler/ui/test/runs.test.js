import assert from 'node:assert/strict';
import test from 'node:test';
import { heights } from '../bars.js';
import { jobs, reasons, timesOf } from '../views/runs.js';
import { skew, times } from '../views/stages.js';
import { began } from '../views/tasks.js';
import { ask, difference, waited } from '../views/versus.js';
import { ticks } from '../timeline.js';

const run = (app, app_name, user, begun) => ({ app, job: app_name, app_name, user, begun, ended: null, wall_seconds: 60 });

test('applications of one job and user are runs of one job', () => {
  const runs = [run('a-1', 'etl', 'ann', '2026-11-20T00:00:00Z'), run('a-2', 'etl', 'ann', '2026-11-21T00:00:00Z'), run('b', 'etl', 'bob', '2026-11-22T00:00:00Z'), run('c', null, null, '2026-11-23T00:00:00Z'), run('d', null, null, '2026-11-24T00:00:00Z')];
  assert.deepEqual(jobs(runs).map((of) => of.map((r) => r.app)), [['a-1', 'a-2'], ['d'], ['c'], ['b']], 'those without a name are of no job');
  assert.deepEqual(jobs(runs, 'a-2').map((of) => of.length), [2]);
  const from = Date.parse('2026-11-20T00:00:00Z');
  assert.equal(timesOf(runs[0]).range, `${from}..${from + 60_000}`);
});

test('differences say their error and their part', () => {
  const change = { left_seconds: 10, right_seconds: 12, difference: 2, difference_error: 0.5 };
  assert.equal(difference(change), '+2.00 s ± 500 ms (+20 %)');
  assert.equal(difference({ ...change, difference: -2, difference_error: null }), '−2.00 s (−20 %)');
  assert.equal(difference({ ...change, left_seconds: 0 }), '+2.00 s ± 500 ms');
  assert.equal(difference(null), '–');
});

test('what was waited for, of one run and of two', () => {
  const by = { lock: 1, shuffle: 7.1, gc: 0.2, storage: 2 };
  assert.equal(reasons({ waited: { by } }), 'shuffle 7.10 s, storage 2.00 s, lock 1.00 s');
  assert.equal(reasons({ waited: null }), '');
  assert.equal(waited({ waited: { lock: [1, 1.001], shuffle: [2, 5], gc: [4, 0] } }), 'gc −4.00 s, shuffle +3.00 s');
  assert.equal(waited({}), '');
});

test('skew is the longest task over the median', () => {
  const stage = { tasks: 4, durations: { median_seconds: 2, max_seconds: 9 } };
  assert.deepEqual([skew(stage), times(skew(stage)), times(12.4)], [4.5, '4.5 ×', '12 ×']);
  for (const none of [{ tasks: 4 }, { ...stage, tasks: 1 }, { tasks: 4, durations: null }]) assert.equal(times(skew(none)), '–');
});

test('a task began when Spark says', () => {
  const seen = { first_seen: '2026-11-20T00:00:10Z' };
  assert.equal(began({ ...seen, spark: { launched: '2026-11-20T00:00:03Z' } }), Date.parse('2026-11-20T00:00:03Z'));
  assert.equal(began(seen), Date.parse(seen.first_seen));
});

test('the y-axis has two to four round values', () => {
  assert.deepEqual(ticks(1.9), [0.5, 1, 1.5]);
  assert.deepEqual(ticks(64), [20, 40, 60]);
  assert.deepEqual([ticks(0), ticks(NaN)], [[], []]);
  for (let most = 0.001; most < 1e6; most *= 1.37) assert.ok(ticks(most).length >= 2 && ticks(most).length <= 4, `${most}`);
});

test('two runs are asked for when there are two', () => {
  assert.equal(ask({ left: 'a', other: '' }), null);
  assert.deepEqual(ask({ left: 'a', other: 'b' })[1].slice(0, 2), [['left.app', 'a'], ['right.app', 'b']]);
});

test('bars have a scale of their own', () => {
  assert.deepEqual(heights([0, 5, 10, NaN], 40), [1, 20, 40, 0]);
  assert.deepEqual(heights([], 40), []);
});
