// The time that is looked at: how far back, a range in it, live or not.
//
// In: the store. Out: an element; `sync` sets it to the state. Fields take local time to the second, and do all that
// dragging on the timeline does.

import { button, h, select, toggle } from './dom.js';
import { outer, times } from './state.js';

const RANGES = [['-5m', '5 minutes'], ['-15m', '15 minutes'], ['-1h', 'hour'], ['-6h', '6 hours'], ['-1d', 'day'], ['-7d', 'week']];

const two = (n) => String(n).padStart(2, '0');

/** Local time as a field wants it. */
export function fieldTime(ms) {
  const d = new Date(Number(ms));
  if (!ms || Number.isNaN(d.getTime())) return '';
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The time zone in which the page says times: `Europe/Berlin, UTC+02:00`. */
function zone(now = new Date()) {
  const minutes = -now.getTimezoneOffset();
  const offset = `UTC${minutes < 0 ? '−' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name && name !== 'UTC' ? `${name}, ${offset}` : 'UTC';
}

/** The controls. */
export class Period {
  constructor({ store, refresh }) {
    const range = (value) => store.set({ range: value, from: '', until: '', zoom: '' });
    this.range = select('Last', RANGES, '-1h', range, { id: 'range' });
    this.custom = h('option', { value: 'custom', disabled: true }, 'chosen range');
    this.range.querySelector('select').append(this.custom);
    const field = (id, label) => h('input', { type: 'datetime-local', step: '1', id, aria: { label } });
    this.from = field('from', 'Range from');
    this.until = field('until', 'Range until');
    const submit = (event) => {
      event.preventDefault();
      const [from, until] = [this.from, this.until].map((f) => new Date(f.value).getTime());
      this.until.setCustomValidity(until > from ? '' : 'The end is not after the beginning.');
      if (!this.until.reportValidity() || !(until > from)) return;
      const seen = store.state.range.startsWith('-') ? null : outer(store.state.range);
      const inside = seen ? from >= Number(seen.from) && until <= Number(seen.until) : from > Date.now() - lengthOf(store.state.range);
      store.set({ from: String(from), until: String(until), ...(inside ? {} : { range: `${from}..${until}` }), live: '' });
    };
    this.until.addEventListener('input', () => this.until.setCustomValidity(''));
    this.clear = button('All of it', () => store.set({ from: '', until: '' }), { id: 'clear-window' });
    this.live = toggle('Live', false, (on) => store.set({ live: on ? '1' : '' }), { id: 'live', title: 'Ask again whenever a window closes' });
    this.element = h('div', { class: 'period' }, this.range,
      h('form', { class: 'window', on: { submit } }, this.from, h('span', { class: 'muted' }, 'to'), this.until, h('button', { type: 'submit' }, 'Set'), this.clear),
      h('span', { class: 'muted zone', title: 'All times on this page are in this time zone' }, zone()),
      this.live, button('Refresh', refresh, { id: 'refresh' }));
  }

  /** `seen` is the range of the last answer, in milliseconds. */
  sync(state, seen) {
    const list = this.range.querySelector('select');
    list.value = RANGES.some(([key]) => key === state.range) ? state.range : 'custom';
    this.live.setAttribute('aria-pressed', String(Boolean(state.live)));
    this.clear.hidden = !state.from;
    const { from, until } = state.from ? times(state) : { from: seen?.from, until: seen?.until };
    for (const [input, ms] of [[this.from, from], [this.until, until]]) if (document.activeElement !== input) input.value = fieldTime(ms);
  }
}

/** Milliseconds of `-15m`. */
export function lengthOf(range) {
  const found = /^-(\d+)([smhd])$/.exec(range);
  return found ? Number(found[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[found[2]] : 36e5;
}
