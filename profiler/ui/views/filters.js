// What is selected: a chip for each label's value, and a way to add one.
//
// In: the state. Out: elements. The values that there are come from the daemon (`/labels/NAME/values`) while one is
// typed.

import { get } from '../api.js';
import { button, h } from '../dom.js';
import { safe } from '../format.js';
import { FRESH, LABELS, selection, times } from '../state.js';

/** Chips of a selection. */
export function chips(state, store, names = {}) {
  const drop = (name, value) => store.set({ ...FRESH, labels: { [name]: (state.labels[name] ?? []).filter((v) => v !== value) } });
  const out = Object.entries(state.labels).flatMap(([name, values]) => values.map((value) => h('span', { class: 'chip', data: { label: name } },
    h('span', { class: 'muted' }, `${name.replaceAll('_', ' ')} `), safe((name === 'app' && names[value]) || value || '(none)', 60),
    button('×', () => drop(name, value), { class: 'drop', aria: { label: `Remove ${name} ${safe(value, 60)}` } }))));
  if (state.query) out.push(h('span', { class: 'chip' }, h('code', {}, safe(state.query, 80)), button('×', () => store.set({ query: '' }), { class: 'drop', aria: { label: 'Remove the selector' } })));
  return out;
}

/** A form that adds a label's value. */
export function filterForm({ id, store, add, label }) {
  const values = h('datalist', { id: `${id}-values` });
  const value = h('input', { id: `${id}-value`, list: `${id}-values`, placeholder: 'value', autocomplete: 'off', aria: { label: 'Value' }, required: true });
  const load = async () => {
    const name = names.value;
    const { state } = store;
    try {
      const rest = selection({ ...state, labels: { ...state.labels, [name]: [] } });
      const answer = await get(`labels/${name}/values`, [...rest, ...Object.entries(times(state)), ['limit', '100']]);
      if (names.value === name) values.replaceChildren(...answer.values.filter((v) => v.value).map((v) => h('option', { value: v.value })));
    } catch { /* typing goes without the list */ }
  };
  const { labels } = store.state;
  const usual = !labels.app ? 'app' : !labels.stage ? 'stage' : 'executor';
  const names = h('select', { id: `${id}-label`, aria: { label: 'Label' }, on: { change: () => { values.replaceChildren(); load(); } } }, LABELS.map((name) => h('option', { value: name, selected: name === usual }, name.replaceAll('_', ' '))));
  value.addEventListener('focus', load, { once: true });
  const submit = (event) => {
    event.preventDefault();
    const typed = value.value.trim();
    value.value = '';
    add(names.value, typed);
  };
  return h('form', { class: 'filter-form', on: { submit } }, names, h('span', { class: 'muted' }, label ?? 'is'), value, values, h('button', { type: 'submit' }, 'Add'));
}
