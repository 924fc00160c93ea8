// The files of the folder: one level at a time, and the content of a file in colours.

import { at, call, copyButton, h, icon, t } from './dom.js';
import { code } from './markup.js';

let shownFolder = '';
let shownOf = '';

/** Elements for the tab: the entries of a folder, each of which opens. */
export function filesPanel(session) {
  if (shownOf !== session) { shownOf = session; shownFolder = ''; }
  const box = h('div', { class: 'files' }, h('p', { class: 'faint' }, t('loading')));
  list(box, session, shownFolder);
  return [box];
}

async function list(box, session, path) {
  shownFolder = path;
  let found;
  try { found = await call(`api/sessions/${session}/files?${new URLSearchParams({ path })}`); } catch (error) { box.replaceChildren(h('p', { class: 'bad' }, error.message)); return; }
  const up = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
  const open = (one) => (one.folder ? list(box, session, one.path) : openFile(session, one.path));
  box.replaceChildren(
    path ? h('div', { class: 'row' }, h('button', { type: 'button', class: 'plain', onclick: () => list(box, session, up) }, icon('back'), t('files.up')), h('code', { class: 'cut' }, path)) : '',
    h('ul', {}, found.entries.map((one) => h('li', {}, h('button', { type: 'button', class: 'plain', onclick: () => open(one) }, icon(one.folder ? 'folder' : 'file'), h('span', { class: 'cut' }, one.name))))),
    found.entries.length ? '' : h('p', { class: 'faint' }, t('files.none')),
    found.complete ? '' : h('p', { class: 'faint' }, t('files.more')));
}

/** Show a file in the dialog. */
export async function openFile(session, path) {
  const dialog = at('evidence');
  let inside;
  try {
    const found = await call(`api/sessions/${session}/file?${new URLSearchParams({ path })}`);
    const shown = code(found.code);
    const prose = /\.(md|markdown|rst|adoc|txt)$/i.test(path);
    const numbers = Array.from({ length: found.lines }, (_, place) => place + 1).join('\n');
    inside = [h('div', { class: 'dialog-head' }, h('h2', {}, found.path), copyButton(() => shown.textContent)),
      h('div', { class: prose ? 'file-code prose-file' : 'file-code', tabindex: '0', role: 'region', 'aria-label': found.path }, prose ? '' : h('pre', { class: 'numbers', 'aria-hidden': 'true' }, numbers), h('pre', {}, shown))];
  } catch (error) {
    inside = [h('h2', {}, path), h('p', {}, error.message)];
  }
  dialog.setAttribute('aria-label', path);
  dialog.replaceChildren(...inside, h('div', { class: 'row end' }, h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, t('close'))));
  dialog.showModal();
}
