import assert from 'node:assert/strict';
import test from 'node:test';
import { compute } from '../flame/compute.js';
import { layout, widths } from '../flame/layout.js';
import { callees, callers, invert, layer, merge } from '../flame/shape.js';
import { fromColumns, fromDiff, pathHashes, pathOf } from '../flame/tree.js';
import { columns, diff, large, stacks, tree } from './trees.js';

const job = () => tree(
  'java:Thread.run;java:Job.work;java-inlined:Job.fast 3',
  'java:Thread.run;java:Job.work;java-interpreted:Job.fast 2',
  'java:Thread.run;java:Job.work;native@/lib/libjvm.so:Unsafe_Copy;kernel:page_fault 4',
  'java:Thread.run;java:Job.work 1',
);

test('sums are of all below', () => {
  const t = job();
  assert.equal(t.sum[0][0], 100);
  assert.equal(t.sum[1][0], 10);
  assert.throws(() => fromColumns({ frames: [{}], columns: { parent: [0, 1], frame: [0, 0], self: [0, 0], total: [], self_samples: [0, 0], total_samples: [] } }), /node 1/);
  assert.throws(() => fromColumns({ frames: [{}], columns: { parent: [0], frame: [3], self: [0], total: [], self_samples: [0], total_samples: [] } }), /node 0/);
});

test('one method is one box unless kinds are to be apart', () => {
  const together = merge(job(), {});
  assert.deepEqual(stacks(together), ['Thread.run;Job.work 10', 'Thread.run;Job.work;Job.fast 50', 'Thread.run;Job.work;Unsafe_Copy;page_fault 40']);
  assert.equal(together.frames.find((f) => f.name === 'Job.fast').kind, 'java-inlined', 'as what it mostly ran');
  assert.equal(merge(job(), { detail: true }).parent.length, job().parent.length);
});

test('what is hidden goes to its caller and nothing is lost', () => {
  assert.deepEqual(stacks(merge(job(), { hide: ['kernel'] })), ['Thread.run;Job.work 10', 'Thread.run;Job.work;Job.fast 50', 'Thread.run;Job.work;Unsafe_Copy 40']);
  assert.deepEqual(stacks(merge(job(), { hide: ['kernel', 'jvm'] })), ['Thread.run;Job.work 50', 'Thread.run;Job.work;Job.fast 50']);
  assert.equal(layer({ kind: 'native', module: '/usr/lib/libjvmti.so' }), '');
  const gc = tree('native@libjvm.so:GangWorker::run;native@libjvm.so:G1::mark 5');
  assert.deepEqual(stacks(merge(gc, { hide: ['jvm'] })), ['total 50']);
});

test('callers first', () => {
  const t = invert(merge(job(), {}));
  assert.deepEqual(stacks(t), ['Job.fast;Job.work;Thread.run 50', 'Job.work;Thread.run 10', 'page_fault;Unsafe_Copy;Job.work;Thread.run 40']);
  assert.equal(t.sum[0][0], 100);
});

test('a sandwich counts a method that calls itself once', () => {
  const t = tree('java:a;java:f;java:f;java:g 3', 'java:b;java:f;java:h 2', 'java:b;java:h 7');
  assert.deepEqual(stacks(callees(t, 'f')), ['f;g 30', 'h 20']);
  assert.equal(callees(t, 'f').sum[0][0], 50);
  assert.deepEqual(stacks(callers(t, 'f')), ['a 30', 'b 20']);
  assert.equal(callers(t, 'nothing'), null);
  const { tree: both, layout: boxes } = compute(t, { focus: 'f', hide: [] });
  assert.equal(both.frames[both.frame[0]].name, 'f');
  assert.equal(both.sum[0][0], 50);
  assert.equal(boxes.row[0], 1, 'one row of callers above');
  for (let i = 1; i < both.parent.length; i += 1) {
    assert.ok(i < both.callers ? boxes.row[i] > 1 : boxes.row[i] < 1);
    assert.ok(boxes.lines[boxes.row[i]].includes(i));
  }
  assert.equal(compute(t, { focus: 'gone', hide: [] }).missing, true);
});

test('boxes lie within their caller, in order, and fill what their sums say', () => {
  for (const sort of ['weight', 'name']) {
    const t = merge(fromColumns(large(3000)), {});
    const { x0, x1, row, lines } = layout(t, { sort });
    for (let i = 1; i < t.parent.length; i += 1) {
      if (t.sum[0][i] === 0) continue;
      assert.ok(x0[i] >= x0[t.parent[i]] - 1e-12 && x1[i] <= x1[t.parent[i]] + 1e-12);
      assert.ok(Math.abs(x1[i] - x0[i] - t.sum[0][i] / t.sum[0][0]) < 1e-9);
      assert.equal(row[i], row[t.parent[i]] + 1);
    }
    for (const line of lines) for (let k = 1; k < line.length; k += 1) assert.ok(x0[line[k]] >= x1[line[k - 1]] - 1e-12);
  }
});

test('the largest first, or by name', () => {
  const t = tree('java:b 1', 'java:a 2', 'java:c 3');
  const names = (sort) => [...layout(t, { sort }).lines[1]].map((id) => t.frames[t.frame[id]].name).join('');
  assert.equal(names('weight'), 'cab');
  assert.equal(names('name'), 'abc');
});

test('a comparison is as wide as is asked, and keeps both sides', () => {
  const t = diff([null, 'total', 0, 0], [0, 'only.left', 4, 0], [0, 'only.right', 0, 6]);
  assert.deepEqual([...widths(t, 'both')], [10, 4, 6]);
  assert.deepEqual([...widths(t, 'right')], [6, 0, 6]);
  const { lines } = layout(t, { basis: 'right' });
  assert.equal(lines[1].length, 1, 'no box for what has no width');
  assert.equal(layout(t, { basis: 'both' }).lines[1].length, 2);
  assert.deepEqual(stacks(invert(t), 1), ['only.left 4']);
  assert.throws(() => fromDiff({ nodes: [{ parent: null, name: 'a', kind: 'label', self: [0, 0] }, { parent: 5, name: 'b', kind: 'java', self: [0, 0] }] }), /node 1/);
});

test('nothing at all is no trouble', () => {
  const empty = fromColumns(columns([]));
  for (const options of [{}, { invert: true }, { focus: 'x' }, { hide: ['kernel', 'jvm'] }]) assert.equal(compute(empty, { hide: [], ...options }).tree.parent.length, 1);
  assert.equal(compute(fromDiff({ nodes: [{ parent: null, name: 'total', kind: 'label', self: [0, 0] }] }), {}).layout.rows, 1);
});

test('a path has the same hash in another answer', () => {
  const [a, b] = [tree('java:x 1', 'java:a;java:b 1'), tree('java:a;java:c 5', 'java:a;java:b 1')];
  const find = (t) => { for (let i = 1; i < t.parent.length; i += 1) if (pathOf(t, i).map((f) => f.name).join() === 'a,b') return pathHashes(t)(i); return null; };
  assert.equal(find(a), find(b));
  const t = merge(fromColumns(large(20_000)), {});
  const hash = pathHashes(t);
  const all = new Set();
  for (let i = 0; i < t.parent.length; i += 1) all.add(hash(i));
  assert.equal(all.size, t.parent.length);
  assert.equal(hash(0), '');
});
