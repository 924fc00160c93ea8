// Trees from the server as elements: only names in this list are made, and every string becomes text.

import { copyButton, h, t } from './dom.js';

const NAMES = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'blockquote', 'strong', 'em', 's', 'code', 'br', 'hr', 'span', 'thead', 'tbody', 'tr', 'th', 'td']);
const COLOURS = new Set(['comment', 'keyword', 'string', 'number', 'name', 'builtin', 'old', 'new']);
const LINK = /^(https?:\/\/|mailto:)/;

/** Level of the last heading: the page's own heading is the first level, and none may be left out below it. */
let above = 1;

/** Elements for a list of nodes. */
export function markup(nodes) {
  above = 1;
  return elements(nodes);
}

function elements(nodes) {
  return nodes.map(element);
}

function element(node) {
  if (typeof node === 'string') return node;
  const [name, attributes, ...children] = node;
  if (name === 'pre') return codeBox(attributes.language, children);
  if (name === 'table') return h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': t('table') }, h('table', {}, elements(children)));
  if (name === 'a' && LINK.test(attributes.href)) return h('a', { href: attributes.href, target: '_blank', rel: 'noopener noreferrer' }, elements(children));
  if (/^h[1-6]$/.test(name)) {
    above = Math.min(6, Number(name[1]) + 1, above + 1);
    return h('p', { class: `heading ${name}`, role: 'heading', 'aria-level': String(above) }, elements(children));
  }
  const colour = name === 'span' && COLOURS.has(attributes.class) ? `code-${attributes.class}` : null;
  const align = attributes.align === 'right' ? 'right' : null;
  return h(NAMES.has(name) ? name : 'span', { class: colour ?? align, start: name === 'ol' ? attributes.start : null }, elements(children));
}

/** Coloured code without a box around it. */
export function code(node) {
  return h('code', {}, elements(node.slice(2)));
}

function codeBox(language, children) {
  const inside = h('code', {}, elements(children));
  return h('div', { class: 'code-box' },
    h('div', { class: 'code-head' }, h('span', {}, language), copyButton(() => inside.textContent)),
    h('pre', { tabindex: '0', role: 'region', 'aria-label': language || t('code') }, inside));
}
