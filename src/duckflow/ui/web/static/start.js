// The start page: folder, model, and a few first requests that suit the folder.

import { at, call, h, say, t } from './dom.js';
import { fillField } from './composer.js';

let folder = '';
let asked = 0;

/** Draw the start page, or hide it. */
export function drawStart(page) {
  const section = at('start');
  section.hidden = Boolean(page.session);
  if (section.hidden) { section.replaceChildren(); return; }
  folder ||= page.folders[0];
  const places = h('select', { id: 'folder' }, page.folders.map((name) => h('option', { value: name, selected: name === folder }, name)));
  places.addEventListener('change', () => { folder = places.value; learn(page); });
  section.replaceChildren(h('div', { class: 'welcome' },
    h('img', { src: 'duck.svg', alt: '', width: 56, height: 56 }),
    h('h1', {}, t('start.title')),
    h('p', { class: 'faint' }, t('start.about')),
    h('div', { class: 'choices-row' }, h('label', {}, h('span', {}, t('folder')), places), h('label', {}, h('span', {}, t('start.model')), h('select', { id: 'model' }, h('option', { value: '' }, t('loading'))))),
    h('ul', { class: 'facts-list', id: 'folder-facts' }),
    h('h2', { id: 'first-title' }, t('start.first')),
    h('div', { class: 'first', id: 'first-requests', role: 'group', 'aria-labelledby': 'first-title' })));
  learn(page);
}

async function learn(page) {
  const number = ++asked;
  let found;
  try { found = await call(`api/start?${new URLSearchParams({ folder })}`); } catch (error) { say(error.message); return; }
  if (number !== asked || !at('model')) return;
  at('model').replaceChildren(...found.models.map((name) => h('option', { value: name, selected: name === found.model }, name)));
  at('folder-facts').replaceChildren(...found.facts.map((one) => h('li', {}, one)));
  at('first-requests').replaceChildren(...found.requests.map((one) => h('button', { type: 'button', onclick: () => fillField(one) }, one)));
  page.chooseMode(found.mode);
}
