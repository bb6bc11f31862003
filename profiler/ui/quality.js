// What an answer is based on: one line, and why.
//
// In: `quality`, `range` and `windows` of an answer (of a comparison those of both sides). Out: an element: samples,
// their error, what was lost, cut, unnamed and missing; the reasons behind a button.

import { h } from './dom.js';
import { count, instant, percent, plusMinus } from './format.js';

const reasons = (title, list, what) => {
  const rows = Object.entries(list ?? {}).sort((a, b) => b[1] - a[1]);
  return rows.length === 0 ? null : h('div', {}, h('h3', {}, title), h('table', {}, h('tbody', {}, rows.map(([name, n]) => h('tr', {}, h('th', { scope: 'row' }, name.replaceAll('_', ' ')), h('td', { class: 'number' }, count(n)), h('td', { class: 'muted' }, what))))));
};

const parts = (list) => (!list || list.length === 0 ? null : h('div', {}, h('h3', {}, 'What is missing'), h('table', {}, h('tbody', {}, list.map((part) => h('tr', {}, h('th', { scope: 'row' }, part.name), h('td', {}, `${instant(Date.parse(part.from))} to ${instant(Date.parse(part.until))}`), h('td', { class: 'muted' }, part.says)))))));

/** The line of one answer. */
export function qualityLine(answer, name = '') {
  const q = answer?.quality;
  if (!q) return null;
  const missing = q.missing ?? 0;
  if (answer.windows === 0 && missing === 0) return null; // the view says why
  const { samples, lost, truncated, frames, unnamed_frames: unnamed } = q;
  const part = (n, of) => (of > 0 && n > 0 ? ` (${percent(n / of)})` : '');
  const item = (text, bad, title) => h('span', { class: bad ? 'bad' : null, title }, text);
  return h('details', { class: 'quality' },
    h('summary', {},
      name ? h('b', {}, `${name}: `) : null,
      item(`${count(samples)} samples ${plusMinus(samples)}`, samples > 0 && samples < 100, 'The sampling error of their sum. With few samples, read shares with care.'),
      item(`${count(lost)} lost${part(lost, lost + samples)}`, lost > 0.01 * (lost + samples), 'Samples that the node lost meanwhile, of whichever process.'),
      item(`${count(truncated)} cut short${part(truncated, samples)}`, truncated > 0.05 * samples, 'Stacks that do not reach the first frame of their thread.'),
      item(`${count(unnamed)} frames unnamed${part(unnamed, frames)}`, unnamed > 0.05 * frames, 'Of all frames, those without a name.'),
      missing > 0 ? item(`${count(missing)} part${missing === 1 ? '' : 's'} missing`, true, 'Blocks of this range that cannot be read, and nodes whose blocks are not here, whichever samples they hold.') : null,
      h('span', { class: 'muted' }, `${count(answer.windows)} window${answer.windows === 1 ? '' : 's'}, ${instant(Date.parse(answer.range.from))} to ${instant(Date.parse(answer.range.until))}`)),
    h('div', { class: 'why' },
      reasons('How stacks ended', q.ends, 'samples'),
      reasons('Why frames have no name', q.unnamed, 'frames'),
      reasons('What was lost', q.lost_by_reason, 'records'),
      parts(q.missing_parts),
      h('p', { class: 'muted' }, q.approximate > 0 ? `${count(q.approximate)} samples have a frame whose debug info is borrowed from nearby code. ` : '',
        'A time based on n samples lies within 1/√n of the truth two times out of three.')));
}
