import assert from 'node:assert/strict';
import test from 'node:test';
import { compute } from '../flame/compute.js';
import { fold } from '../flame/fold.js';
import { merge } from '../flame/shape.js';
import { stacks, tree } from './trees.js';

const RUN = 'java:Thread.run;java:Worker.run;java:TaskRunner.run;java:org.apache.spark.scheduler.Task.run';

test('the way to Task.run is one frame, and nothing is lost', () => {
  const t = merge(tree(`${RUN};java:Job.work 3`, `native:start;${RUN};java:Job.work 2`, `${RUN} 1`, 'java:Thread.run;java:Worker.run;java:Other.run 4'), {});
  const folded = fold(t);
  assert.equal(folded.sum[0][0], t.sum[0][0]);
  assert.deepEqual(stacks(folded).sort(), ['Thread.run;Worker.run;Other.run 40', 'thread start … Task.run (5 frames) 10', 'thread start … Task.run (5 frames);Job.work 50']);
  assert.equal(folded.parent.length, 6, 'no node without anything');
});

test('groups stay before it, what is short and what has no task is not folded', () => {
  const t = tree(`label:stage=3;${RUN};java:Job.work 2`, `label:stage=4;${RUN};java:Job.work 1`);
  assert.deepEqual(stacks(fold(t)).sort(), ['stage=3;thread start … Task.run (4 frames);Job.work 20', 'stage=4;thread start … Task.run (4 frames);Job.work 10']);
  const short = tree('java:A.a;java:org.apache.spark.scheduler.Task.run;java:B.b 1');
  assert.equal(fold(short), short);
  const none = tree('java:A.a 1');
  assert.equal(fold(none), none);
});

test('a task within a task folds once', () => {
  const t = tree(`${RUN};java:X.x;${RUN};java:Job.work 1`);
  assert.deepEqual(stacks(fold(t)), ['thread start … Task.run (4 frames);X.x;Thread.run;Worker.run;TaskRunner.run;org.apache.spark.scheduler.Task.run;Job.work 10']);
});

test('the fold is of the graph with its root first alone', () => {
  const t = tree(`${RUN};java:Job.work 2`);
  const names = (options) => compute(t, options).tree.frames.map((f) => f.kind);
  assert.ok(names({ fold: true }).includes('fold'));
  assert.ok(!names({ fold: true, invert: true }).includes('fold'));
  assert.ok(!names({ fold: true, focus: 'Job.work' }).includes('fold'));
  assert.ok(!names({}).includes('fold'));
});

test('only one’s own code: what it calls is its self time', () => {
  const t = tree(`label:stage=3;${RUN};java:com.acme.Job.work;java:java.util.Arrays.sort 2`, `label:stage=3;${RUN} 1`, 'java:com.acme.Main.main;java:com.acme.Main.go 4');
  const own = merge(t, { only: ['com.acme.'] });
  assert.equal(own.sum[0][0], t.sum[0][0]);
  assert.deepEqual(stacks(own).sort(), ['com.acme.Main.main;com.acme.Main.go 40', 'stage=3 10', 'stage=3;com.acme.Job.work 20']);
});
