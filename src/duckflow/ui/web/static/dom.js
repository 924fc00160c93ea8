// Elements made by hand: what a model or a file says only ever becomes text.

let texts = {};

export function setTexts(found) { texts = found; }

/** The text for a key, its slots filled. */
export function t(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (slot, name) => values[name] ?? slot);
}

/** The element with this id. */
export const at = (id) => document.getElementById(id);

/** An element with attributes, listeners (on…) and children; strings become text. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same in SVG. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== ''));
  return element;
}

/** A share of 1 as a percentage, rounded down. */
export function percent(share) { return `${Math.floor(share * 100 + 1e-6)} %`; }

const ICONS = {
  menu: 'M3 5h14M3 10h14M3 15h14', panel: 'M3 4h14v12H3zM12.5 4v12', plus: 'M10 4v12M4 10h12', close: 'M5 5l10 10M15 5L5 15',
  copy: 'M7 7h9v9H7zM4 13V4h9', done: 'M4 10.5l4 4 8-9', send: 'M10 16V4M5 9l5-5 5 5', stop: 'M6 6h8v8H6z', more: 'M5 10h.01M10 10h.01M15 10h.01',
  picture: 'M3 4h14v12H3zM3 13l4-4 4 4 2-2 4 4M13.5 7.5h.01', bell: 'M6 8a4 4 0 018 0c0 4 2 5 2 5H4s2-1 2-5M9 16h2', search: 'M9 4a5 5 0 100 10A5 5 0 009 4M13 13l4 4',
  folder: 'M3 5h5l2 2h7v9H3z', file: 'M5 3h7l3 3v11H5zM12 3v3h3', back: 'M12 4l-6 6 6 6', edit: 'M4 16l1-4 8-8 3 3-8 8z', bin: 'M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11',
};

/** A small picture for a button, drawn with lines in the colour of the text. */
export function icon(name) {
  return s('svg', { class: 'icon', viewBox: '0 0 20 20', 'aria-hidden': 'true' }, s('path', { d: ICONS[name] }));
}

/** A button with a picture only; its name is for screen readers and the tooltip. */
export function iconButton(name, label, onclick, attributes = {}) {
  return h('button', { type: 'button', class: 'plain', 'aria-label': label, title: label, onclick, ...attributes }, icon(name));
}

/** A button that copies a text, and says so. */
export function copyButton(text) {
  const button = iconButton('copy', t('copy'), async () => {
    try { await navigator.clipboard.writeText(text()); } catch { return; }
    button.replaceChildren(icon('done'));
    button.setAttribute('aria-label', t('copied'));
    setTimeout(() => { button.replaceChildren(icon('copy')); button.setAttribute('aria-label', t('copy')); }, 1500);
  }, { class: 'plain copy' });
  return button;
}

/** A time of day in the reader's way. */
export function clock(when) {
  return new Date(when).toLocaleTimeString(document.documentElement.lang, { hour: 'numeric', minute: '2-digit' });
}

/** The time of day for today, else the date. */
export function moment(when) {
  const [date, today] = [new Date(when), new Date()];
  const short = date.toDateString() === today.toDateString() ? { timeStyle: 'short' } : { dateStyle: 'medium' };
  return date.toLocaleString(document.documentElement.lang, short);
}

/** Ask the server; what it says, or an error with its sentence and what else it told. */
export async function call(path, body) {
  const options = body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  let answer;
  try { answer = await fetch(path, options); } catch { throw new Error(t('gone')); }
  const said = await answer.json().catch(() => ({ message: t('gone') }));
  if (!answer.ok) throw Object.assign(new Error(said.message ?? t('gone')), { told: said });
  return said;
}

let silence = 0;

/** Show a short notice; an empty one takes the last away. */
export function say(message) {
  at('notice').textContent = message;
  clearTimeout(silence);
  silence = setTimeout(() => { at('notice').textContent = ''; }, 12000);
}
