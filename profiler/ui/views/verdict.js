// What a comparison comes to, in a sentence.
//
// In: an answer of `/diff`. Out: texts, and an element of them. A difference that chance explains is called none, with its
// figure and error, and no cause is named: most of any noise comes from some method.

import { h } from '../dom.js';
import { percent, safe, signed } from '../format.js';
import { kindOf, scaled } from '../units.js';

const NONE = 'no significant difference';

/** `sides`, `result`, `note` and the name of the `cause`, empty where there is none; null of an answer without totals. */
export function judged(answer) {
  const { total, cause, left, right, significant, scale } = answer;
  if (!total) return null;
  const kind = kindOf(right);
  const is = (v) => scaled(v, kind.unit);
  const nothing = significant === false;
  const of = nothing ? '' : (cause?.name ?? '');
  if (scale === 'equal') {
    const sides = `Shares of ${is(right[kind.amount])} on the right and ${is(left[kind.amount])} on the left are compared: `;
    // Both totals are made equal, so only methods can differ.
    return { sides, result: nothing ? NONE : 'some methods differ', note: '', cause: of };
  }
  const { difference: d, difference_error: error } = total;
  const [l, r] = [total.left_seconds ?? total.left_amount, total.right_seconds ?? total.right_amount];
  const sides = `Right ${is(r)}, left ${is(l)}${scale === 'task' ? ' per task' : ''}: `;
  const known = Number.isFinite(error) && error !== null;
  const share = l > 0 ? ` (${percent(Math.abs(d) / l, 0)})` : '';
  if (nothing) return { sides, result: NONE, note: ` (${signed(is(d), d)}${known ? ` ± ${is(error)}` : ''})`, cause: of };
  const figure = `${is(Math.abs(d))}${known ? ` ± ${is(error)}` : ''} ${d < 0 ? 'less' : 'more'}`;
  // Methods may differ where their sum does not.
  const note = known && Math.abs(d) <= 2 * error ? `${share}, within error, but some methods differ` : share;
  return { sides, result: figure, note, cause: of };
}

/** The sentence. */
export function verdict(answer) {
  const says = judged(answer);
  if (!says) return null;
  return h('p', { class: 'verdict' }, says.sides, h('b', {}, says.result), says.note, '.',
    says.cause ? h('span', {}, ' Most of it comes from ', h('code', {}, safe(says.cause, 160)), '.') : null);
}
