// Why slow tasks are slow, in words and links.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../views/compare.js';

test('parts over a percent, and the locks among them', () => {
  const facts = {
    because: [{ of: 'lock', seconds: 1.5, share: 0.6 }, { of: 'run_delay', seconds: 1, share: 0.395 }, { of: 'gc', seconds: 0.01, share: 0.005 }],
    locks: [{ lock: 'a.Cache', owner: 'loader', seconds: 1.4 }],
  };
  const { parts, locks } = reasons(facts);
  assert.deepEqual(parts.map((part) => part.text.replace(/ \(.*/, '')), ['lock 60 %', 'run delay 40 %']);
  assert.deepEqual(parts.map((part) => part.to), [{ view: 'flame', type: 'off-cpu', labels: { wait: ['lock'] } }, null]);
  assert.match(locks[0].text, /^a\.Cache held by loader \(/);
  assert.deepEqual(locks[0].to.labels, { lock: ['a.Cache'], lock_owner: ['loader'] });
  assert.deepEqual(reasons({}), { parts: [], locks: [] });
});
