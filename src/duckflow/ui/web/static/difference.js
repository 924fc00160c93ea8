// A difference, both sides next to each other; on a narrow screen one below the other.

import { h, t } from './dom.js';

/** Whether it is only a text in full, such as a plan. */
export function isPlain(rows) {
  return rows.every(([kind]) => kind === 'title');
}

/** Draw the rows of a difference, or a text in full. */
export function difference(rows) {
  if (isPlain(rows)) return h('div', { class: 'document' }, rows.map(([, line]) => (typeof line === 'string' ? line : '')).join('\n'));
  const body = h('tbody');
  for (const [kind, ...row] of rows) body.append(kind === 'title' || kind === 'hunk' ? h('tr', { class: kind }, h('td', { colspan: 4 }, row[0])) : line(kind, row));
  return h('table', { class: 'difference', 'aria-label': t('diff.title') },
    h('colgroup', {}, ['number', 'side', 'number', 'side'].map((name) => h('col', { class: name }))),
    h('thead', {}, h('tr', {}, h('th', { colspan: 2, scope: 'col' }, t('diff.before')), h('th', { colspan: 2, scope: 'col' }, t('diff.after')))), body);
}

function line(kind, [left, old, right, fresh]) {
  const side = (number, text, sign, label) => [
    h('td', { class: 'number', 'aria-hidden': 'true' }, text === null ? '' : String(number)),
    h('td', { class: kind === 'both' ? 'line' : text === null ? 'line none' : `line ${sign}` },
      text !== null && kind === 'changed' ? [h('span', { class: 'hidden' }, label), h('span', { class: 'sign', 'aria-hidden': 'true' }, sign === 'old' ? '−' : '+')] : '',
      text ?? ''),
  ];
  return h('tr', { class: kind }, side(left, old, 'old', t('diff.removed')), side(right, fresh, 'new', t('diff.added')));
}
