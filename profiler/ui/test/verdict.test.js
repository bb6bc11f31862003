// What a comparison comes to: no cause in the noise.

import assert from 'node:assert/strict';
import test from 'node:test';
import { longest } from '../views/compare.js';
import { judged } from '../views/verdict.js';

const total = { left_seconds: 1, right_seconds: 3, difference: 2, difference_error: 0.1 };
const answer = (more) => ({ scale: 'task', left: { cpu_seconds: 10 }, right: { cpu_seconds: 12 }, total, significant: true, cause: { name: 'Job.slow' }, ...more });
const words = (is) => { const { sides, result, note, cause } = judged(is); return [sides + result + note, cause]; };

test('a difference, its error, and its cause', () => {
  assert.deepEqual(words(answer()), ['Right 3.00 s, left 1.00 s per task: 2.00 s ± 100 ms more (200 %)', 'Job.slow']);
  const less = { left_seconds: 3, right_seconds: 1.5, difference: -1.5, difference_error: null };
  assert.deepEqual(words(answer({ scale: 'absolute', total: less, cause: null })), ['Right 1.50 s, left 3.00 s: 1.50 s less (50 %)', '']);
  assert.equal(judged({}), null);
});

test('within the error there is none, and no cause', () => {
  const noise = { ...total, right_seconds: 1.1, difference: 0.1, difference_error: 0.1 };
  assert.deepEqual(words(answer({ total: noise, significant: false })), ['Right 1.10 s, left 1.00 s per task: no significant difference (+100 ms ± 100 ms)', '']);
  const same = 'Shares of 12.00 s on the right and 10.00 s on the left are compared: ';
  assert.deepEqual(words(answer({ scale: 'equal', significant: false })), [`${same}no significant difference`, '']);
  assert.deepEqual(words(answer({ scale: 'equal' })), [`${same}some methods differ`, 'Job.slow']);
  assert.match(words(answer({ total: noise }))[0], /100 ms ± 100 ms more \(10 %\), within error, but some methods differ$/);
});

test('what is no time has its unit', () => {
  const bytes = { left_amount: 1_048_576, right_amount: 4_194_304, difference: 3_145_728, difference_error: 1.5 };
  const side = (allocated_bytes) => ({ type: 'alloc', allocated_bytes });
  const of = { total: bytes, left: side(1_048_576), right: side(2_097_152) };
  assert.deepEqual(words(answer(of)), ['Right 4,194,304 bytes, left 1,048,576 bytes per task: 3,145,728 bytes ± 1.5 bytes more (300 %)', 'Job.slow']);
  assert.match(words(answer({ ...of, scale: 'equal' }))[0], /^Shares of 2,097,152 bytes on the right and 1,048,576 bytes on the left/);
});

test('a task that is slow by wall time is told where tasks are slow by CPU', () => {
  const long = { task: '77', task_index: '17', task_attempt: '0', executor: '2', wall_seconds: 9, blocked_seconds: 8.5, usual_wall_seconds: 1, waits_sampled: true };
  const { text, to } = longest({ long });
  assert.equal(text, 'Slow by wall time is another: task #17 on executor 2 took 9.00 s, 8.50 s of it blocked, where the usual ones took 1.00 s.');
  assert.deepEqual(to, { view: 'flame', type: 'off-cpu', labels: { task: ['77'] } });
  const unsure = longest({ long: { ...long, waits_sampled: false, task_attempt: '1' } });
  assert.match(unsure.text, /#17 \(attempt 1\).*Spark 4\.1/);
  assert.equal(unsure.to.type, 'cpu');
  assert.equal(longest({ long: null }), null);
});
