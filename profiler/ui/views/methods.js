// Methods as a table: the graph's equal for those who want numbers, or hear the page.
//
// In: what is shown. Out: a table by self time and total; of a comparison by difference. A row leads to the method's
// sandwich.

import { h } from '../dom.js';
import { percent, plusMinus, safe, signed } from '../format.js';
import { cell, scaled, unitOf } from '../units.js';
import { errorOfDifference, methods } from '../methods.js';
import { kept, table } from '../table.js';

/** The table. Of a comparison `answer` says how many samples each side has. */
export function methodsTable({ tree }, state, store, answer) {
  const rows = methods(tree);
  const name = { key: 'name', label: 'Method', text: true, wide: true, value: (m) => m.frame.name, show: (m) => safe(m.frame.name, 160) };
  const kind = { key: 'kind', label: 'Kind', text: true, value: (m) => m.frame.kind, show: (m) => h('span', { class: 'whole-word' }, m.frame.kind.replace('java-', '')) };
  const module = { key: 'module', label: 'From', text: true, value: (m) => m.frame.module ?? '', show: (m) => safe((m.frame.module ?? '').split('/').pop(), 40) };
  return table({
    caption: 'Methods', label: 'methods', rows,
    columns: [name, ...(tree.kind === 'diff' ? compared(rows, sampled(tree, answer), unitOf(state)) : plain(tree, unitOf(state))), kind, module],
    usual: '-own', ...kept(state, store),
    link: (m) => store.href({ view: state.view === 'methods' ? 'flame' : state.view, focus: m.frame.name, table: '', zoom: '', invert: '', ts: '', tq: '' }),
    none: 'There are no samples here.',
  });
}

function plain(tree, unit) {
  const whole = tree.sum[0][0] || 1;
  const label = unit === 'ns' ? ', s' : '';
  const column = (key, text, of, samples, hint) => [
    { key, label: `${text}${label}`, value: (m) => m[of][0], show: (m) => cell(m[of][0], unit), bar: (m) => m[of][0] / whole, hint },
    { key: `${key}-share`, label: '%', value: (m) => m[of][0], show: (m) => percent(m[of][0] / whole), hint: 'Of all that is shown' },
    { key: `${key}-error`, label: 'Error', value: (m) => -m[of][1], show: (m) => h('span', { class: 'muted' }, plusMinus(m[of][1])), hint: 'Sampling error' },
  ];
  return [...column('own', 'Self', 'own', 1, 'In the method alone'), ...column('sum', 'Total', 'sum', 1, 'In the method and all that it calls')];
}

/** A difference's error, of the amounts `[right, left]` of a method. */
function sampled(tree, { right, left, scale }) {
  const each = [right, left].map((side, at) => (side.samples > 0 ? tree.sum[at][0] / side.samples : 0));
  const whole = scale === 'equal' ? tree.sum.map((column) => column[0]) : undefined;
  return (pair) => errorOfDifference(pair, each, whole);
}

function compared(rows, error, unit) {
  const is = (v) => scaled(v, unit);
  // Times say their unit themselves.
  const head = (text) => (unit === 'ns' ? text : `${text}, ${unit}`);
  const most = Math.max(...rows.map((m) => Math.abs(m.own[0] - m.own[1])), 1e-12);
  const difference = (key, text, of, bar) => [
    { key: `${key}-left`, label: head('Left'), value: (m) => m[of][1], show: (m) => is(m[of][1]) },
    { key: `${key}-right`, label: head('Right'), value: (m) => m[of][0], show: (m) => is(m[of][0]) },
    { key, label: head(text), value: (m) => m[of][0] - m[of][1], show: (m) => signed(is(m[of][0] - m[of][1]), m[of][0] - m[of][1]), bar: bar ? (m) => Math.abs(m[of][0] - m[of][1]) / most : undefined, hint: 'Right less left' },
    { key: `${key}-error`, label: head('Error'), value: (m) => error(m[of]), show: (m) => within(m[of], error(m[of]), unit), hint: 'Standard error of the difference; a difference of less than twice that may be chance' },
  ];
  return [...difference('own', 'Self, difference', 'own', true), ...difference('sum', 'Total, difference', 'sum', false)];
}

function within(pair, error, unit) {
  const is = Math.abs(pair[0] - pair[1]) < 2 * error;
  return h('span', { class: is ? 'muted' : '' }, `± ${scaled(error, unit)}`, is ? ', within error' : '');
}
