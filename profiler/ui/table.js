// A table that sorts and is searched.
//
// In: columns `{key, label, value(row), show(row), text, wide, bar, hint}`, rows, and where order and search are kept.
// Out: an element. A column with `text` is text, others are numbers: aligned right, largest first. A `wide` one holds names or
// words and keeps room for some. `bar(row)` draws a bar behind a number, 0 to 1. A row with a link goes there when it is
// clicked anywhere. At most MOST rows are shown at first, and a button shows more.

import { button, h } from './dom.js';

/** Rows at first, and more with each press. */
const MOST = 200;

/** How many rows a table showed last, by what it is of. */
const opened = new Map();

/** Rows in order: `key` or `-key` (largest first). Text by the numbers in it. */
export function sorted(rows, columns, order) {
  const column = columns.find((c) => c.key === order.replace(/^-/, ''));
  if (!column) return rows;
  const sign = order.startsWith('-') ? -1 : 1;
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  const of = new Map(rows.map((row) => [row, column.value(row)]));
  const empty = (v) => v === null || v === undefined || Number.isNaN(v);
  return [...rows].sort((a, b) => {
    const [x, y] = [of.get(a), of.get(b)];
    if (empty(x) || empty(y)) return empty(x) - empty(y); // what is not known stands last
    return sign * (column.text ? compare(String(x), String(y)) : x - y);
  });
}

/** Rows that have all the words of a search. */
export function filtered(rows, columns, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  const texts = columns.filter((c) => c.text);
  return rows.filter((row) => {
    const all = texts.map((c) => String(c.value(row) ?? '')).join('\n').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** Where a table of the page keeps its order and search: in the state. */
export const kept = (state, store) => ({ order: state.ts, search: state.tq, set: (change) => store.set(change, { replace: true }) });

/** Fills `host` with tables anew: what was typed in or pressed is another element then, and has the focus. */
export function renew(host, fill) {
  const active = host.contains(document.activeElement) ? document.activeElement : null;
  const typed = active?.classList.contains('filter') ? active.selectionStart : null;
  const column = active?.dataset.column;
  // Several tables may have such a field or column: it is the same one in their order.
  const like = typed !== null ? '.filter' : column ? `[data-column="${CSS.escape(column)}"]` : null;
  const at = like ? [...host.querySelectorAll(like)].indexOf(active) : -1;
  const row = active?.closest('tbody') ? active.getAttribute('href') : null;
  const { scrollLeft = 0 } = host.querySelector('.scroll') ?? {};
  fill();
  const field = like ? host.querySelectorAll(like)[at] : null;
  field?.focus();
  if (typed !== null) field?.setSelectionRange(typed, typed);
  if (row) host.querySelector(`tbody a[href="${CSS.escape(row)}"]`)?.focus();
  if (scrollLeft) host.querySelector('.scroll')?.scrollTo(scrollLeft, 0);
}

/** The table. `set({ts, tq})` keeps order and search; a `short` one has neither. */
export function table({ caption, columns, rows, order, usual, search, set, link, label, none, short }) {
  const now = order || usual;
  const found = sorted(filtered(rows, columns, search), columns, now);
  const body = h('tbody');
  const foot = h('p', { class: 'more' });
  let shown = 0;
  const more = (_, most = MOST) => {
    body.append(...found.slice(shown, shown + most).map((row) => line(row, columns, link)));
    shown = Math.min(found.length, shown + most);
    opened.set(label, [now + search, shown]);
    foot.replaceChildren(...(shown < found.length ? [button(`Show ${Math.min(MOST, found.length - shown)} more of ${found.length}`, more)] : []));
  };
  const [of, last] = opened.get(label) ?? [];
  more(null, of === now + search ? Math.max(MOST, last) : MOST);
  const head = columns.map((c) => {
    const is = now.replace(/^-/, '') === c.key;
    const turned = is ? (now.startsWith('-') ? c.key : `-${c.key}`) : c.text ? c.key : `-${c.key}`;
    return h('th', { scope: 'col', class: classOf(c), title: c.hint, aria: { sort: is ? (now.startsWith('-') ? 'descending' : 'ascending') : null } },
      c.plain ? c.label : button(c.label, () => set({ ts: turned === usual ? '' : turned }), { data: { column: c.key } }));
  });
  const filter = h('input', { type: 'search', class: 'filter', placeholder: `Search ${label}`, aria: { label: `Search ${label}` }, value: search, on: { input: (e) => set({ tq: e.target.value }) } });
  const result = found.length === rows.length ? `${rows.length} ${label}` : `${found.length} of ${rows.length} ${label}`;
  return h('section', { class: 'table' },
    h('div', { class: 'table-head' }, h('h2', {}, caption), ...(short ? [] : [filter, h('span', { class: 'muted', role: 'status' }, result)])),
    found.length === 0 ? h('p', { class: 'empty' }, rows.length === 0 ? none : 'Nothing matches this search.')
      : h('div', { class: 'scroll', tabindex: '0', role: 'region', aria: { label: caption } }, h('table', {}, h('caption', { class: 'quiet' }, caption), h('thead', {}, h('tr', {}, head)), body)),
    foot);
}

const classOf = (column) => (column.text ? `text${column.wide ? ' wide' : ''}` : 'number');

function line(row, columns, link) {
  const target = link?.(row);
  const cells = columns.map((c, i) => {
    const shown = c.show ? c.show(row) : String(c.value(row) ?? '–');
    const content = i === 0 && target ? h('a', { href: target }, shown) : shown;
    const bar = c.bar?.(row);
    // A long name may be cut at the cell's edge.
    const whole = c.wide && typeof shown === 'string' ? shown : null;
    return h(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, title: whole, class: `${classOf(c)}${bar !== undefined ? ' bar' : ''}`, style: bar !== undefined ? { '--part': `${(Math.min(1, Math.max(0, bar || 0)) * 100).toFixed(2)}%` } : {} }, content);
  });
  const follow = (event) => {
    if (event.target.closest('a, button') || String(getSelection())) return;
    location.hash = target;
  };
  return h('tr', { class: target ? 'goes' : null, on: target ? { click: follow } : {} }, cells);
}
