// The keys, and how to read what is shown.

import { button, h } from './dom.js';

const KEYS = [
  ['/', 'search methods'], ['?', 'this help'], ['g', 'to the graph'], ['t', 'to the timeline'], ['l', 'live on or off'],
  ['1 … 6', 'applications, stages, executors, flame graph, methods, compare'],
  ['← → ↑ ↓', 'in the graph: to the next box; on the timeline: move the range (Shift: its end)'],
  ['Enter', 'zoom to the box'], ['Backspace', 'zoom out one step'], ['Esc', 'the whole graph; drop the range'], ['+ −', 'wider, narrower'],
  ['n N', 'next and previous match'], ['m', 'menu of the box'],
];

const MOUSE = [['click', 'zoom'], ['right click', 'sandwich, copy the name, search'], ['drag', 'move what is zoomed'], ['Ctrl or Shift and wheel', 'zoom where the pointer is']];

let dialog;

/** Opens it. */
export function help() {
  dialog?.remove();
  const rows = (list) => h('table', { class: 'keys' }, h('tbody', {}, list.map(([key, does]) => h('tr', {}, h('th', { scope: 'row' }, h('kbd', {}, key)), h('td', {}, does)))));
  dialog = h('dialog', { class: 'help', aria: { labelledby: 'help-title' } },
    h('h2', { id: 'help-title' }, 'Help'),
    h('div', { class: 'columns' }, h('div', {}, h('h3', {}, 'Keys'), rows(KEYS)), h('div', {}, h('h3', {}, 'In the graph'), rows(MOUSE),
      h('h3', {}, 'How to read it'),
      h('p', {}, 'A box is a method; below it is what it called. Its width is its share of the CPU time of all that is selected, not when it ran. Start with wide boxes that have nothing wide below them: that is where the CPU time goes.'),
      h('p', {}, 'A flame graph shows time on the CPU. The bar above a stage’s graph shows how much of its tasks’ time that was: the rest is run delay and blocked time.'))),
    h('form', { method: 'dialog' }, button('Close', () => dialog.close(), { class: 'primary' })));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
