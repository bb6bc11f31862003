import assert from 'node:assert/strict';
import test from 'node:test';
import { bytes, count, duration, packageOf, percent, plusMinus, safe, seconds, short } from '../format.js';
import { address } from '../api.js';
import { fileName } from '../export/save.js';
import { filtered, sorted } from '../table.js';
import { fieldTime, lengthOf } from '../period.js';
import { errorOfDifference } from '../methods.js';
import { waitedFor } from '../views/stages.js';

test('names hide nothing and stay short', () => {
  assert.equal(safe('a\nb\u202ec\u0000\u200b'), 'a\\u{a}b\\u{202e}c\\u{0}\\u{200b}');
  assert.equal(safe('<img src=x onerror=a()>'), '<img src=x onerror=a()>', 'text, which is put on the page as text');
  assert.equal(safe('x'.repeat(10_000)).length, 200);
  assert.equal(safe('\ud800x'), '\\u{d800}x');
  assert.equal(safe('naïve 日本 😀'), 'naïve 日本 😀');
  assert.equal(safe(null), '');
});

test('short names', () => {
  assert.equal(short('org.apache.spark.scheduler.Task.run'), 'Task.run');
  assert.equal(short('a.b.C.m(int, x.Y)'), 'C.m(int, x.Y)');
  assert.equal(short('std::vector<int>::push_back(int)'), 'std::vector<int>::push_back(int)');
  assert.equal(short('do_syscall_64'), 'do_syscall_64');
  assert.equal(packageOf({ kind: 'java-inlined', name: 'org.apache.spark.sql.X.y' }), 'org.apache.spark');
  assert.equal(packageOf({ kind: 'java', name: 'Main.run' }), '(no package)');
  assert.equal(packageOf({ kind: 'native', name: 'f', module: '/lib/x86/libc.so.6' }), 'libc.so.6');
});

test('numbers', () => {
  assert.deepEqual([0, 0.0000004, 0.0123, 0.9999, 4.206, 59.999, 60, 3599.7, 3600, 93784, -2.5, NaN].map(duration),
    ['0 s', '0 µs', '12 ms', '1.00 s', '4.21 s', '1 m 00 s', '1 m 00 s', '1 h 00 m', '1 h 00 m', '26 h 03 m', '−2.50 s', '–']);
  assert.deepEqual([0.1234, 0.01, 0.0005, 0, 1].map((p) => percent(p)), ['12.3 %', '1.00 %', '0.050 %', '0.00 %', '100.0 %']);
  assert.deepEqual([400, 100, 4, 0].map(plusMinus), ['± 5.0 %', '± 10 %', '± 50 %', '']);
  assert.equal(count(1234567), '1,234,567');
  assert.equal(seconds(1234.5), '1,234.50');
  assert.equal(bytes(1536), '1.5 KiB');
});

test('addresses are relative to the page, whatever the prefix', () => {
  assert.equal(address('apps', [['app', 'a&b'], ['query', '']], 'http://h:1/pre/fix/#view=flame').href, 'http://h:1/pre/fix/api/v1/apps?app=a%26b');
  assert.equal(address('labels/app/values', {}, 'http://h/').href, 'http://h/api/v1/labels/app/values');
});

test('files have plain names', () => {
  assert.equal(fileName('../../etc/passwd · stage 3', 'pprof'), 'etc-passwd-stage-3.pb.gz');
  assert.equal(fileName('\u202e', 'svg'), 'profile.svg');
});

test('tables sort by number and by text, what is not known last', () => {
  const columns = [{ key: 'n', value: (r) => r.n }, { key: 't', text: true, value: (r) => r.t }];
  const rows = [{ n: 2, t: 'stage 10' }, { n: null, t: 'stage 9' }, { n: 30, t: 'x' }];
  assert.deepEqual(sorted(rows, columns, '-n').map((r) => r.n), [30, 2, null]);
  assert.deepEqual(sorted(rows, columns, 'n').map((r) => r.n), [2, 30, null]);
  assert.deepEqual(sorted(rows, columns, 't').map((r) => r.t), ['stage 9', 'stage 10', 'x']);
  assert.equal(sorted(rows, columns, 'nothing'), rows);
  assert.deepEqual(filtered(rows, columns, ' STAGE 9').map((r) => r.t), ['stage 9']);
});

test('times of fields', () => {
  assert.equal(fieldTime(''), '');
  assert.equal(new Date(fieldTime(1_700_000_000_000)).getTime(), 1_700_000_000_000);
  assert.deepEqual([lengthOf('-15m'), lengthOf('-1d'), lengthOf('1..2')], [900_000, 86_400_000, 3_600_000]);
});

test('what a stage waited for, the longest first', () => {
  assert.equal(waitedFor({ waited: { by: { gc: 0.5, shuffle: 3 } } }), `shuffle ${duration(3)}, gc ${duration(0.5)}`);
  assert.equal(waitedFor({ waited: null }) + waitedFor({}), '');
});

test('the error of a difference is that of both sides', () => {
  // 400 samples of 10 ms on the right, 100 of 20 ms on the left: 0.2 s each.
  assert.equal(errorOfDifference([4, 2], [0.01, 0.02]).toFixed(6), Math.sqrt(0.04 + 0.04).toFixed(6));
  // Of shares, which is nothing where a method is the whole side.
  assert.equal(errorOfDifference([4, 2], [0.01, 0.02], [4, 4]).toFixed(6), Math.sqrt(0.02).toFixed(6));
  assert.equal(errorOfDifference([0, 0], [0.01, 0]), 0);
});
