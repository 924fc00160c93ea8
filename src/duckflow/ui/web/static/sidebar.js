// The list of sessions: open, find, rename and delete.

import { at, call, h, icon, iconButton, moment, say, t } from './dom.js';
import { counted } from './fleet.js';

/** States that the reader can act on or wait for; the others say nothing. */
const STATES = ['asks', 'works'];

let words = '';
let found = null;
let asked = 0;
let renaming = '';
let drawn = '';

/** Draw the list. `page` has the sessions, the fleet, and what is shown. */
export function drawSidebar(page) {
  const key = JSON.stringify([page.sessions, page.fleet?.counts, page.fleet?.error, page.session, words, found && [...found], renaming, page.offersNotices()]);
  if (key === drawn) return;
  drawn = key;
  const focused = document.activeElement?.dataset?.keep;
  const nav = at('sessions');
  const { session, fleet } = page;
  const inFleet = session === 'fleet' || session.startsWith('run-');
  const runs = fleet ? h('a', { class: `runs${inFleet ? ' current' : ''}${fleet.counts.waiting ? ' asks' : ''}`, href: '#fleet', 'aria-current': session === 'fleet' ? 'page' : null },
    h('span', { class: 'title' }, t('fleet.title')), h('span', { class: 'status' }, fleet.error || counted(fleet))) : '';
  const search = h('input', { type: 'search', id: 'find', 'data-keep': 'find', value: words, placeholder: t('find.hint'), 'aria-label': t('find.label'), autocomplete: 'off' });
  search.value = words;
  search.addEventListener('input', () => look(search.value, page));
  const listed = page.sessions.filter((one) => !words || found?.has(one.id) || one.title.toLowerCase().includes(words.toLowerCase()));
  nav.replaceChildren(
    h('div', { class: 'brand' }, h('img', { src: 'duck.svg', alt: '', width: 22, height: 22 }), h('span', { class: 'name' }, 'Duckflow'), h('span', { class: 'grow' }),
      page.offersNotices() ? iconButton('bell', t('notice.allow'), page.allow, { class: 'plain', id: 'notify' }) : '',
      iconButton('close', t('close'), () => page.show('main'), { class: 'plain only-narrow' })),
    h('a', { class: session ? 'new' : 'new current', href: '#', 'aria-current': session ? null : 'page', onclick: () => { page.show('main'); if (!location.hash) page.open(''); } }, icon('plus'), t('new')),
    runs,
    h('div', { class: 'find' }, icon('search'), search),
    listed.length ? h('ul', {}, listed.map((one) => item(one, page))) : h('p', { class: 'faint empty' }, words ? t('find.none') : t('find.empty')));
  if (focused) nav.querySelector(`[data-keep="${focused}"]`)?.focus();
  if (focused === 'find') search.setSelectionRange(words.length, words.length);
}

function item(one, page) {
  if (renaming === one.id) return h('li', {}, renameForm(one, page));
  const current = one.id === page.session;
  const folder = one.workspace.split('/').pop();
  return h('li', { class: current ? 'current' : '' },
    h('a', { href: `#${one.id}`, class: one.status, 'aria-current': current ? 'page' : null, title: one.workspace, onclick: () => page.show('main') },
      h('span', { class: 'title' }, one.title),
      h('span', { class: 'status' }, STATES.includes(one.status) ? [h('b', {}, t(`session.${one.status}`)), ' · '] : '', `${folder} · ${moment(one.updated)}`),
      words && found?.get(one.id) ? h('span', { class: 'said' }, found.get(one.id)) : ''),
    h('span', { class: 'acts' },
      iconButton('edit', t('rename.title', { title: one.title }), () => { renaming = one.id; drawSidebar(page); at('rename').focus(); }),
      iconButton('bin', t('delete.title', { title: one.title }), () => askDelete(one, page))));
}

function renameForm(one, page) {
  const field = h('input', { id: 'rename', value: one.title, maxlength: 60, 'aria-label': t('rename.title', { title: one.title }), 'data-keep': 'rename' });
  field.value = one.title;
  const end = () => { renaming = ''; drawSidebar(page); };
  const form = h('form', { class: 'rename' }, field, iconButton('done', t('rename.save'), () => form.requestSubmit()));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try { if (field.value.trim()) await call(`api/sessions/${one.id}/title`, { title: field.value.trim() }); end(); } catch (error) { say(error.message); }
  });
  field.addEventListener('keydown', (event) => { if (event.key === 'Escape') { event.stopPropagation(); end(); } });
  return form;
}

function askDelete(one, page) {
  const dialog = at('evidence');
  const gone = async () => {
    dialog.close();
    try { await call(`api/sessions/${one.id}/delete`, {}); if (page.session === one.id) location.hash = ''; } catch (error) { say(error.message); }
  };
  dialog.setAttribute('aria-label', t('delete.title', { title: one.title }));
  dialog.replaceChildren(h('h2', {}, t('delete.title', { title: one.title })), h('p', {}, t('delete.means')),
    h('div', { class: 'row end' }, h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, t('keep')), h('button', { type: 'button', class: 'danger', id: 'really-delete', onclick: gone }, t('delete.yes'))));
  dialog.showModal();
}

async function look(typed, page) {
  words = typed;
  const number = ++asked;
  drawSidebar(page);
  const answer = typed.trim() ? await call(`api/search?${new URLSearchParams({ words: typed })}`).catch(() => ({ found: [] })) : { found: [] };
  if (number !== asked) return;
  found = new Map(answer.found.map((one) => [one.id, one.said]));
  drawSidebar(page);
}
