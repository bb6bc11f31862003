// What is shown where an answer should be and is not: errors, and the question for the token.
//
// In: an error of api.js. Out: an element with the daemon's own message and what can be done.

import { setToken } from './api.js';
import { button, h } from './dom.js';
import { safe } from './format.js';

/** The box of an error. `again` asks once more, `choose` takes one of what there is instead. */
export function trouble(error, { again, choose }) {
  if (error.code === 'unauthorized') return tokenForm(error, again);
  const choices = (error.choices ?? []).slice(0, 20);
  return h('section', { class: 'trouble', role: 'alert' },
    h('h2', {}, error.code === 'unreachable' ? 'No answer' : error.status >= 500 ? 'The daemon could not answer' : 'This cannot be answered'),
    h('p', {}, safe(error.message, 2000)),
    error.parameter === 'app' && choices.length > 0 ? h('p', {}, 'There are: ', choices.map((choice) => button(safe(choice, 60), () => choose({ labels: { app: [choice] } })))) : null,
    error.code === 'answer_too_large' || error.code === 'query_timeout' ? h('p', { class: 'muted' }, 'Drag a shorter range on the timeline, or choose a stage or an executor.') : null,
    h('p', {}, button('Try again', again, { class: 'primary' })));
}

function tokenForm(error, again) {
  const field = h('input', { type: 'password', autocomplete: 'off', required: true, aria: { label: 'Token' } });
  const submit = (event) => {
    event.preventDefault();
    setToken(field.value.trim());
    again();
  };
  queueMicrotask(() => field.focus());
  return h('section', { class: 'trouble', role: 'alert' },
    h('h2', {}, 'This daemon needs a token'),
    h('p', {}, 'On its machine, `emberscope url` prints a link that logs this browser in. Or enter a token here:'),
    h('p', {}, safe(error.message, 400)),
    h('p', { class: 'muted' }, 'It is in the file that the setting token-file names, else in the file token of the data directory. This tab keeps it until it is closed, and sends it to this daemon only.'),
    h('form', { class: 'row', on: { submit } }, field, h('button', { type: 'submit', class: 'primary' }, 'Use it')));
}

/** A longer range to look at, where there is one: a button. */
export function longer(store) {
  const { range, from } = store.state;
  if (!from && ['-1d', '-7d'].includes(range)) return null;
  return button('Look at the last day', () => store.set({ range: '-1d', from: '', until: '' }), { class: 'primary' });
}

/** Where there is nothing to show: what to do. */
export function nothing(title, ...lines) {
  return h('section', { class: 'nothing' }, h('h2', {}, title), lines.filter(Boolean).map((line) => h('p', {}, line)));
}
