import assert from 'node:assert/strict';
import test from 'node:test';
import { heights } from '../bars.js';
import { jobs, timesOf } from '../views/runs.js';
import { ask, difference } from '../views/versus.js';

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

test('two runs are asked for when there are two', () => {
  assert.equal(ask({ left: 'a', other: '' }), null);
  assert.deepEqual(ask({ left: 'a', other: 'b' })[1].slice(0, 2), [['left.app', 'a'], ['right.app', 'b']]);
});

test('bars have a scale of their own', () => {
  assert.deepEqual(heights([0, 5, 10, NaN], 40), [1, 20, 40, 0]);
  assert.deepEqual(heights([], 40), []);
});
