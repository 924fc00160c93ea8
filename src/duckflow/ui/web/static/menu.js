// The list above the message field: commands after a slash, files after an @, or the choices of a command.

import { call, h, t } from './dom.js';

const PAUSE_MS = 60;

export class Menu {
  /** `place()` says which session or folder the suggestions are for; `choose(line)` sends a choice of a command. */
  constructor(field, place, choose) {
    this.field = field;
    this.place = place;
    this.choose = choose;
    this.items = [];
    this.marked = -1;
    this.asked = 0;
    this.list = h('ul', { id: 'menu', role: 'listbox', 'aria-label': t('menu.label'), tabindex: '0', hidden: true });
    this.title = h('p', { class: 'menu-title', id: 'menu-title', hidden: true });
    this.box = h('div', { class: 'menu' }, this.title, this.list);
    this.list.addEventListener('keydown', (event) => { if (this.key(event)) { event.preventDefault(); event.stopPropagation(); } });
    field.addEventListener('input', () => this.look());
    field.addEventListener('blur', () => setTimeout(() => { if (!this.box.contains(document.activeElement)) this.close(); }, 150));
  }

  get open() { return !this.list.hidden; }

  /** Ask for suggestions for the text before the cursor, a moment after the last key. */
  look() {
    const typed = this.field.value.slice(0, this.field.selectionStart);
    clearTimeout(this.timer);
    if (!/^[/／][^\n]*$/.test(typed) && !/@\S*$/.test(typed)) { this.close(); return; }
    if (this.open) this.draw('', this.items.filter((one) => one.place <= typed.length && one.insert?.toLowerCase().includes(typed.slice(one.place).toLowerCase())));
    const asked = ++this.asked;
    this.timer = setTimeout(async () => {
      const found = await call(`api/suggestions?${new URLSearchParams({ ...this.place(), typed })}`).catch(() => ({ found: [] }));
      if (asked !== this.asked || this.field.value.slice(0, this.field.selectionStart) !== typed) return;
      this.draw('', found.found.map((one) => ({ ...one, place: typed.length + one.start })));
    }, PAUSE_MS);
  }

  /** Offer the choices of a command. */
  offer({ question, choices }) {
    this.draw(question, choices.map((one) => ({ shown: one.shown, does: one.remark, choose: () => { this.close(); this.choose(one.line); } })));
    this.field.focus();
  }

  take(one) {
    if (one.choose) one.choose();
    else this.insert(one);
  }

  /** Replace what was typed since the suggestion's place. */
  insert(one) {
    const [before, after] = [this.field.value.slice(0, one.place), this.field.value.slice(this.field.selectionStart)];
    this.field.value = before + one.insert + (after.startsWith(' ') ? '' : ' ') + after;
    const end = before.length + one.insert.length + 1;
    this.field.setSelectionRange(end, end);
    this.close();
    this.field.focus();
    this.field.dispatchEvent(new Event('input'));
  }

  draw(title, items) {
    this.items = items;
    this.marked = items.length ? 0 : -1;
    this.title.textContent = title;
    this.title.hidden = !title;
    this.list.hidden = !items.length;
    this.list.replaceChildren(...items.map((one, place) => h('li', { id: `menu-${place}`, role: 'option', 'aria-selected': 'false', onmousedown: (event) => { event.preventDefault(); this.take(one); } },
      h('span', { class: 'shown' }, one.shown), one.does ? h('span', { class: 'does' }, one.does) : '')));
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((one, place) => one.setAttribute('aria-selected', String(place === this.marked)));
    this.list.children[this.marked]?.scrollIntoView({ block: 'nearest' });
    if (this.open) this.field.setAttribute('aria-activedescendant', `menu-${this.marked}`);
    else this.field.removeAttribute('aria-activedescendant');
  }

  close() {
    this.asked += 1;
    clearTimeout(this.timer);
    if (this.open) this.draw('', []);
  }

  /** Take a key of the message field; true if it was meant for the menu. */
  key(event) {
    if (!this.open || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { this.marked = (this.marked + step + this.items.length) % this.items.length; this.mark(); return true; }
    if (event.key === 'Escape') { this.close(); return true; }
    if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !this.complete())) { this.take(this.items[this.marked]); return true; }
    return false;
  }

  /** Whether the marked suggestion is typed in full already, so that Enter sends it. */
  complete() {
    const one = this.items[this.marked];
    return one.insert !== undefined && this.field.value.slice(one.place).trim() === one.insert;
  }
}
