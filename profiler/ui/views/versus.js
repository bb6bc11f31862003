// Two runs of a job side by side: what the right one uses more or less than the left.
//
// In: `/compare`. Out: both as a whole, settings that differ, and tables of queries, stages, operators and methods, the largest difference first. A
// difference within twice its error is said to be none. A query leads to its plan, a stage to the flame graph of both.

import { h } from '../dom.js';
import { duration, instant, percent, safe } from '../format.js';
import { table } from '../table.js';
import { FRESH } from '../state.js';

/** What to ask; null before two runs are chosen. */
export const ask = (state) => (state.left && state.other ? ['compare', [['left.app', state.left], ['right.app', state.other], ['limit', '50']]] : null);

/** A difference in words: `+1.20 s ± 40 ms (+12 %)`. */
export function difference(change) {
  if (!change || !Number.isFinite(change.difference)) return '–';
  const { left_seconds: left, difference: d, difference_error: error } = change;
  const sign = d === 0 ? '' : d < 0 ? '−' : '+';
  const share = left > 0 && d !== 0 ? ` (${sign}${percent(Math.abs(d / left), 0)})` : '';
  return `${sign}${duration(Math.abs(d))}${Number.isFinite(error) && error !== null ? ` ± ${duration(error)}` : ''}${share}`;
}

const told = (change) => h('span', { class: change?.significant ? '' : 'muted' }, difference(change), change?.significant || !Number.isFinite(change?.difference_error ?? NaN) ? '' : ', within its error');
const size = (row) => Math.abs(row.cpu.difference ?? 0);
const only = (row) => (row.only === 'left' ? 'the left run only' : row.only === 'right' ? 'the right run only' : '');

const WHOLE = [['cpu', 'CPU time of tasks'], ['beside', 'CPU time of other threads'], ['wall', 'from first to last seen'], ['task_wall', 'time in tasks'], ['run_delay', 'waiting for a CPU'], ['blocked', 'blocked']];

/** What to show. */
export function show(answer, { store }) {
  const { left, right, whole } = answer;
  const run = (of) => h('span', {}, h('b', {}, safe(of.app_name ?? of.app, 60)), ` ${of.begun ? instant(Date.parse(of.begun)) : ''}, ${of.stages} stages, `, h('code', {}, safe(of.app, 60)));
  return h('div', {},
    h('p', {}, h('a', { href: store.href({ ...FRESH, view: 'runs', left: '', other: '' }) }, 'All runs'), ' › left: ', run(left), ' · right: ', run(right), ' · ', h('a', { href: store.href({ left: right.app, other: left.app }) }, 'turn round')),
    h('p', { class: 'verdict' }, answer.significant ? 'They differ by more than chance explains.' : 'Nothing differs by more than chance explains.'),
    ...unnamed(left, right),
    h('table', { class: 'whole' }, h('caption', { class: 'quiet' }, 'Both runs as a whole'),
      h('thead', {}, h('tr', {}, ['', 'Left', 'Right', 'Difference'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, WHOLE.filter(([key]) => whole[key]).map(([key, text]) => h('tr', {}, h('th', { scope: 'row', class: 'text' }, text),
        h('td', { class: 'number' }, duration(whole[key].left_seconds)), h('td', { class: 'number' }, duration(whole[key].right_seconds)), h('td', { class: 'number' }, told(whole[key])))))),
    settings(answer.settings ?? []),
    part('Queries', answer.queries, [
      { key: 'name', label: 'Query', text: true, value: (q) => q.description, show: (q) => safe(q.description || '–', 90) },
      { key: 'what', label: '', text: true, value: only, show: (q) => only(q) || (q.plan_changed ? 'its plan is another' : '') },
    ], (q) => (q.right_execution === null ? null : store.href({ ...FRESH, view: 'queries', ...span(right), execution: String(q.right_execution), labels: { app: [right.app] } }))),
    part('Stages', answer.stages, [
      { key: 'name', label: 'Stage', text: true, value: (s) => s.description ?? s.name, show: (s) => safe(s.description ?? s.name ?? `${s.left_stage ?? '–'} and ${s.right_stage ?? '–'}`, 90) },
      { key: 'numbers', label: 'Left, right', text: true, value: (s) => s.right_stage, show: (s) => `${s.left_stage ?? '–'}, ${s.right_stage ?? '–'}` },
      { key: 'what', label: '', text: true, value: only, show: only },
    ], (s) => both(s.left_stage && { stage: [s.left_stage] }, s.right_stage && { stage: [s.right_stage] }, '')),
    part('Operators', answer.operators, [{ key: 'name', label: 'Operator', text: true, value: (o) => o.operator, show: (o) => safe(o.operator, 90) }],
      (o) => both({ operator: [o.operator] }, { operator: [o.operator] }, '')),
    part('Methods', { ...answer.methods, rows: answer.methods.rows.map((m) => ({ ...m, cpu: { ...m.self, significant: m.significant } })) }, [{ key: 'name', label: 'Method', text: true, value: (m) => m.name, show: (m) => safe(m.name, 120) }],
      (m) => both({}, {}, m.name)));

  /** The flame graph of both, which may have run long ago. */
  function both(of, other, focus) {
    if (!of || !other) return null;
    const at = (side) => ({ from: [String(Date.parse(side.range.from))], until: [String(Date.parse(side.range.until))] });
    return store.href({ ...FRESH, view: 'compare', ...span(left), focus, scale: 'absolute', labels: { app: [left.app], ...of }, right: { app: [right.app], ...other, ...at(right) } });
  }
}

const span = (side) => ({ range: `${Date.parse(side.range.from)}..${Date.parse(side.range.until)}`, from: '', until: '', live: '' });

function settings(rows) {
  if (rows.length === 0) return null;
  const value = (text) => (text === null ? h('span', { class: 'muted' }, 'not set') : h('code', {}, safe(text, 60)));
  return h('table', { class: 'whole' }, h('caption', { class: 'quiet' }, 'Settings that differ'),
    h('thead', {}, h('tr', {}, ['', 'Left', 'Right'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, h('th', { scope: 'row', class: 'text' }, h('code', {}, safe(row.name, 80))), h('td', {}, value(row.left)), h('td', {}, value(row.right))))));
}

function unnamed(...sides) {
  return sides.filter((side) => side.unnamed_stages > 0).map((side) => h('p', { class: 'note' }, `Of ${safe(side.app, 60)} ${side.unnamed_stages} stages have no name: they are put side by side in their order alone.`));
}

function part(caption, { rows, cut }, columns, link) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(size), 1e-12);
  const figures = [
    { key: 'left', label: 'Left', value: (r) => r.cpu.left_seconds, show: (r) => duration(r.cpu.left_seconds) },
    { key: 'right', label: 'Right', value: (r) => r.cpu.right_seconds, show: (r) => duration(r.cpu.right_seconds) },
    { key: 'difference', label: 'Difference', value: size, show: (r) => told(r.cpu), bar: (r) => (r.cpu.significant ? size(r) / most : 0), hint: 'Of CPU time, with its standard error' },
  ];
  return h('div', {}, table({ caption, label: caption.toLowerCase(), columns: [...columns, ...figures], rows, order: '', usual: '-difference', search: '', set: () => {}, link, none: '' }),
    cut > 0 ? h('p', { class: 'muted' }, `${cut} with smaller differences are not shown.`) : null);
}
