// What the pointer is over, in a few lines.
//
// In: an element, a laid-out tree and a node. Out: the element filled: name, where the code is from, shares and
// times with their sampling error; of a comparison both sides, in total and self.

import { h } from '../dom.js';
import { count, percent, plusMinus, safe, signed } from '../format.js';
import { KINDS, kindOf } from './colour.js';
import { value } from './moves.js';
import { hasSelf } from './tree.js';

const KIND = new Map(KINDS.map(([key, name]) => [key, name]));

const line = (name, ...values) => h('tr', {}, h('th', { scope: 'row' }, name), values.map((v) => h('td', {}, v)));

/** Fills the tooltip. */
export function tip(element, tree, layout, node, unit) {
  const frame = tree.frames[tree.frame[node]];
  const where = [KIND.get(kindOf(frame)) ?? frame.kind, frame.module && safe(frame.module, 120), frame.line && `line ${frame.line}`, frame.operator && `operator ${safe(frame.operator, 60)}`];
  element.replaceChildren(
    h('p', { class: 'tip-name' }, safe(frame.name, 400)),
    h('p', { class: 'tip-where' }, where.filter(Boolean).join(' · '), frame.approximate ? ' · borrowed debug info' : null),
    h('table', {}, h('tbody', {}, tree.kind === 'diff' ? sides(tree, node, unit) : figures(tree, node, unit))),
  );
}

function figures(tree, node, unit) {
  const [sum, samples] = tree.sum;
  const caller = tree.parent[node];
  const whole = sum[0] || 1;
  return [
    line('total', value(tree, sum[node], unit), percent(sum[node] / whole)),
    hasSelf(tree, node) ? line('self', value(tree, tree.own[0][node], unit), percent(tree.own[0][node] / whole)) : null,
    node > 0 && sum[caller] > 0 ? line(hasSelf(tree, node) ? 'of its caller' : 'of its callee', '', percent(sum[node] / sum[caller])) : null,
    line('based on', `${count(samples[node])} samples`, plusMinus(samples[node])),
  ].filter(Boolean);
}

function sides(tree, node, unit) {
  const [right, left] = tree.sum;
  const is = (v) => value(tree, v, unit);
  const share = (column) => (column[0] > 0 ? percent(column[node] / column[0]) : '–');
  const change = (name, r, l) => line(name, signed(is(r - l), r - l), l > 0 ? signed(percent((r - l) / l), r - l) : r > 0 ? 'new' : '');
  return [
    line('left', is(left[node]), share(left)),
    line('right', is(right[node]), share(right)),
    change('difference', right[node], left[node]),
    hasSelf(tree, node) ? change('difference of self', tree.own[0][node], tree.own[1][node]) : null,
  ].filter(Boolean);
}
