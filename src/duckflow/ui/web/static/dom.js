// Elements made by hand: what a model or a file says only ever becomes text.

let texts = {};

export function setTexts(found) { texts = found; }

/** The text for a key, its slots filled. */
export function t(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (slot, name) => values[name] ?? slot);
}

/** An element with attributes, listeners (on…) and children; strings become text. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** A share of 1 as a percentage, rounded down. */
export function percent(share) { return `${Math.floor(share * 100 + 1e-6)} %`; }

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

/** A reply: paragraphs as they are written, code between fences in a box of its own. */
export function prose(text) {
  const parts = text.split(/^```[^\n]*\n?/m);
  return parts.map((part, place) => (place % 2 ? h('pre', { class: 'code' }, part) : h('div', { class: 'prose' }, part.trim())))
    .filter((one) => one.textContent);
}

/** Whether it is only a text in full, such as a plan. */
export function isPlain(rows) {
  return rows.every(([kind]) => kind === 'title');
}

/** A difference, both sides next to each other; on a narrow screen one below the other. */
export function difference(rows) {
  if (isPlain(rows)) return h('pre', { class: 'code' }, rows.map(([, line]) => (typeof line === 'string' ? line : '')).join('\n'));
  const body = h('tbody');
  for (const [kind, ...row] of rows) {
    if (kind === 'title' || kind === 'hunk') {
      body.append(h('tr', { class: kind }, h('td', { colspan: 4 }, row[0])));
      continue;
    }
    const [left, old, right, fresh] = row;
    const side = (number, line, sign, label) => [
      h('td', { class: 'number', 'aria-hidden': 'true' }, line === null ? '' : String(number)),
      h('td', { class: kind === 'both' ? 'line' : line === null ? 'line none' : `line ${sign}` },
        line !== null && kind === 'changed' ? h('span', { class: 'sign', 'aria-label': label }, sign === 'old' ? '−' : '+') : '',
        line ?? ''),
    ];
    body.append(h('tr', { class: kind }, side(left, old, 'old', t('diff.removed')), side(right, fresh, 'new', t('diff.added'))));
  }
  return h('table', { class: 'difference', 'aria-label': t('diff.title') },
    h('colgroup', {}, ['number', 'side', 'number', 'side'].map((name) => h('col', { class: name }))),
    h('thead', {}, h('tr', {}, h('th', { colspan: 2, scope: 'col' }, t('diff.before')), h('th', { colspan: 2, scope: 'col' }, t('diff.after')))), body);
}

/** A time of day in the reader's way. */
export function clock(at) {
  return new Date(at).toLocaleTimeString(document.documentElement.lang, { hour: '2-digit', minute: '2-digit' });
}

/** A day and a time, short. */
export function moment(at) {
  return new Date(at).toLocaleString(document.documentElement.lang, { dateStyle: 'short', timeStyle: 'short' });
}

/** Ask the server; what it says, or an error with its sentence. */
export async function call(path, body) {
  const options = body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const said = await answer.json().catch(() => ({ message: t('gone') }));
  if (!answer.ok) throw new Error(said.message ?? t('gone'));
  return said;
}
