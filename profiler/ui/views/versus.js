// Two runs of a job side by side: what the right one uses more or less than the left.
//
// In: `/compare`. Out: both as a whole, settings that differ, and tables of queries, stages, operators and methods, the largest
// difference first. A difference within twice its error is called within error. A query leads to its plan, a stage to the flame graph
// of both.

import { h } from '../dom.js';
import { count, duration, instant, percent, safe } from '../format.js';
import { KINDS } from '../kinds.js';
import { kept, table } from '../table.js';
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

const told = (change) => h('span', { class: change?.significant ? '' : 'muted' }, difference(change), change?.significant || !Number.isFinite(change?.difference_error ?? NaN) ? '' : ', within error');

/** Sampled waits of both runs by reason, `{of, left, right}`: the one that there is most more or less of first. */
export function waits(row) {
  const all = Object.entries(row.waited ?? {}).map(([of, [left, right]]) => ({ of, left, right }));
  return all.sort((a, b) => Math.abs(b.right - b.left) - Math.abs(a.right - a.left));
}

const more = ({ left, right }) => `${right > left ? '+' : ''}${duration(right - left)}`;

/** `shuffle +1.20 s`: the reason that a query or stage waits the most more or less for; empty where no wait was sampled. */
export function waiting(row) {
  const [first] = waits(row);
  return first ? `${safe(first.of, 40)} ${more(first)}` : '';
}

const size = (row) => Math.abs(row.cpu.difference ?? 0);
const only = (row) => (row.only === 'left' ? 'only in the left run' : row.only === 'right' ? 'only in the right run' : '');

const WHOLE = [['cpu', 'CPU time of tasks'], ['beside', 'CPU time of other threads'], ['wall', 'from first to last seen'], ['task_wall', 'wall time of tasks'], ['run_delay', 'of it, run delay'], ['blocked', 'of it, blocked']];

const noteOf = (q) => only(q) || (q.plan_changed ? 'different plan' : '');

/** The column of waits, where any was sampled. */
const waited = ({ rows }) => (rows.some((row) => waits(row).length > 0)
  ? [{ key: 'waited', label: 'Waiting', text: true, wide: true, value: waiting, show: (row) => h('span', { title: detail(row) }, waiting(row) || '–'), hint: 'The cause that it waits the most more or less for, by samples of waits' }] : []);

const detail = (row) => waits(row).map((wait) => `${safe(wait.of, 40)}: ${duration(wait.left)}, ${duration(wait.right)} (${more(wait)})`).join('\n');

/** What to show. */
export function show(answer, { state, store }) {
  const { left, right, whole } = answer;
  const keep = kept(state, store);
  const run = (of) => h('span', {}, h('b', {}, safe(of.app_name ?? of.app, 60)), ` ${of.begun ? instant(Date.parse(of.begun)) : ''}, ${of.stages} stages, `, h('code', {}, safe(of.app, 60)));
  return h('div', {},
    h('p', {}, h('a', { href: store.href({ ...FRESH, view: 'runs', left: '', other: '' }) }, 'All runs'), ' › left: ', run(left), ' · right: ', run(right), ' · ', h('a', { href: store.href({ left: right.app, other: left.app }) }, 'swap')),
    h('p', { class: 'verdict' }, answer.significant ? 'They differ by more than chance explains.' : 'No significant difference: neither the whole nor a query, stage, operator or method differs by more than chance explains.'),
    ...unnamed(left, right),
    asWhole(whole),
    settings(answer.settings ?? []),
    part('Queries', answer.queries, [
      { key: 'name', label: 'Query', text: true, wide: true, value: (q) => q.description, show: (q) => safe(q.description || '–', 90) },
      { key: 'what', label: 'Note', text: true, value: noteOf, show: noteOf },
      ...waited(answer.queries),
    ], (q) => (q.right_execution === null ? null : store.href({ ...FRESH, view: 'queries', ...span(right), execution: String(q.right_execution), labels: { app: [right.app] } })), keep),
    part('Stages', answer.stages, [
      { key: 'name', label: 'Stage', text: true, wide: true, value: (s) => s.description ?? s.name, show: (s) => safe(s.description ?? s.name ?? `${s.left_stage ?? '–'} and ${s.right_stage ?? '–'}`, 90) },
      { key: 'numbers', label: 'Left, right', text: true, value: (s) => s.right_stage, show: (s) => `${s.left_stage ?? '–'}, ${s.right_stage ?? '–'}` },
      { key: 'what', label: 'Note', text: true, value: only, show: only },
      ...waited(answer.stages),
    ], (s) => both(s.left_stage && { stage: [s.left_stage] }, s.right_stage && { stage: [s.right_stage] }, ''), keep),
    part('Operators', answer.operators, [{ key: 'name', label: 'Operator', text: true, wide: true, value: (o) => o.operator, show: (o) => safe(o.operator, 90) }],
      (o) => both({ operator: [o.operator] }, { operator: [o.operator] }, ''), keep),
    part('Methods, by self time', { ...answer.methods, rows: answer.methods.rows.map((m) => ({ ...m, cpu: { ...m.self, significant: m.significant } })) },
      [{ key: 'name', label: 'Method', text: true, wide: true, value: (m) => m.name, show: (m) => safe(m.name, 120) }], (m) => both({}, {}, m.name), keep));

  /** The flame graph of both, which may have run long ago. */
  function both(of, other, focus) {
    if (!of || !other) return null;
    const at = (side) => ({ from: [String(Date.parse(side.range.from))], until: [String(Date.parse(side.range.until))] });
    return store.href({ ...FRESH, view: 'compare', type: KINDS[0].type, ...span(left), focus, scale: 'absolute', labels: { app: [left.app], ...of }, right: { app: [right.app], ...other, ...at(right) } });
  }
}

function asWhole(whole) {
  const row = (text, left, right, difference) => h('tr', {}, h('th', { scope: 'row', class: 'text' }, text),
    [duration(left), duration(right), difference].map((cell) => h('td', { class: 'number' }, cell)));
  return h('div', { class: 'sideways', tabindex: '0', role: 'region', aria: { label: 'Both runs as a whole' } },
    h('table', { class: 'whole' }, h('caption', { class: 'quiet' }, 'Both runs as a whole'),
      h('thead', {}, h('tr', {}, ['', 'Left', 'Right', 'Difference'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, WHOLE.filter(([key]) => whole[key]).map(([key, text]) => row(text, whole[key].left_seconds, whole[key].right_seconds, told(whole[key]))),
        waits(whole).map((wait) => row(`waiting, sampled: ${safe(wait.of, 40)}`, wait.left, wait.right, more(wait))))));
}

const span = (side) => ({ range: `${Date.parse(side.range.from)}..${Date.parse(side.range.until)}`, from: '', until: '', live: '' });

function settings(rows) {
  if (rows.length === 0) return null;
  const value = (text) => (text === null ? h('span', { class: 'muted' }, 'not set') : h('code', {}, safe(text, 60)));
  return h('div', { class: 'sideways', tabindex: '0', role: 'region', aria: { label: 'Settings that differ' } }, h('table', { class: 'whole' }, h('caption', { class: 'quiet' }, 'Settings that differ'),
    h('thead', {}, h('tr', {}, ['', 'Left', 'Right'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, h('th', { scope: 'row', class: 'text' }, h('code', {}, safe(row.name, 80))), h('td', {}, value(row.left)), h('td', {}, value(row.right)))))));
}

function unnamed(...sides) {
  return sides.filter((side) => side.unnamed_stages > 0).map((side) => h('p', { class: 'note' }, `${count(side.unnamed_stages)} stage${side.unnamed_stages === 1 ? ' has' : 's have'} no name in ${safe(side.app, 60)}: paired by order alone.`));
}

function part(caption, { rows, cut }, columns, link, keep) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(size), 1e-12);
  const figures = [
    { key: 'left', label: 'Left', value: (r) => r.cpu.left_seconds, show: (r) => duration(r.cpu.left_seconds) },
    { key: 'right', label: 'Right', value: (r) => r.cpu.right_seconds, show: (r) => duration(r.cpu.right_seconds) },
    { key: 'difference', label: 'Difference', value: size, show: (r) => told(r.cpu), bar: (r) => (r.cpu.significant ? size(r) / most : 0), hint: 'Of CPU time, with its standard error' },
  ];
  return h('div', {}, table({ caption, label: caption.split(',')[0].toLowerCase(), columns: [...columns, ...figures], rows, usual: '-difference', ...keep, link, none: '' }),
    cut > 0 ? h('p', { class: 'muted' }, `${cut} with smaller differences are not shown.`) : null);
}
