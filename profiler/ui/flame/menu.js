// What can be done with one box: the menu of a right click, of the key `m`, or of a long press.
//
// In: a place and entries `[text, action]`. Out: a menu that arrows, Home, End, Enter and Escape work in, and that
// closes when the focus leaves it. One at a time.

import { h } from '../dom.js';

let open = null;

/** Closes the menu, if there is one. */
export function closeMenu() {
  const { list, back } = open ?? {};
  open = null;
  list?.remove();
  back?.focus({ preventScroll: true });
}

/** Opens a menu at a place of the window. */
export function openMenu(x, y, title, entries, back) {
  closeMenu();
  const items = entries.map(([text, action]) => h('button', { type: 'button', role: 'menuitem', tabindex: '-1', on: { click: () => { closeMenu(); action(); } } }, text));
  const list = h('div', { class: 'menu', role: 'menu', aria: { label: title } }, h('p', { class: 'menu-title' }, title), items);
  list.addEventListener('keydown', (event) => {
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at - 1 + items.length) % items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener('focusout', (event) => {
    if (open?.list === list && !list.contains(event.relatedTarget)) { open = null; list.remove(); }
  });
  document.body.append(list);
  const { width, height } = list.getBoundingClientRect();
  list.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
  list.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 4))}px`;
  open = { list, back };
  items[0].focus({ preventScroll: true });
}
