// The message field: text, pictures, mode, and what may be sent at the moment.

import { at, call, h, icon, iconButton, say, t } from './dom.js';
import { Menu } from './menu.js';

const LARGEST = 5_000_000;
const MOST = 8;
const LOOK_MS = 500;
const RETRY_MS = 4000;
const KINDS = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

let pictures = [];
let menu = null;
const drafts = new Map();
/** Messages that wait until another session leaves their folder, by the session they are for. */
const waiting = new Map();
let looking = 0;

/** Draw the form. `page` tells the session and its state, and takes what comes of a line. */
export function drawComposer(page) {
  const form = at('composer');
  const { session, now, asked, modes } = page;
  const fresh = !session || session === 'fleet';
  form.hidden = session.startsWith('run-');
  form.classList.toggle('fresh', !session);
  const kind = `${session} ${fresh} ${now?.working} ${now?.mode} ${asked} ${page.mode} ${session === 'fleet' ? page.places() : ''}`;
  if (form.dataset.kind === kind) return;
  const before = at('message');
  const [focused, same] = [document.activeElement === before, form.dataset.session === session];
  if (before) drafts.set(form.dataset.session, before.value);
  form.dataset.kind = kind;
  form.dataset.session = session;
  if (!same) pictures = [];
  const message = h('textarea', { id: 'message', rows: 1, maxlength: 100000, placeholder: hintOf(page), 'aria-label': t('message'), 'aria-autocomplete': 'list', 'aria-controls': 'menu' });
  message.value = drafts.get(session) ?? '';
  menu = new Menu(message, () => ({ session: fresh ? '' : session, folder: at('folder')?.value ?? page.folders[0] }), (line) => send(page, line));
  message.addEventListener('keydown', (event) => {
    if (menu.key(event)) { event.preventDefault(); event.stopPropagation(); return; }
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  message.addEventListener('input', () => { message.removeAttribute('aria-invalid'); grow(message); });
  message.addEventListener('paste', (event) => addPictures(event.clipboardData.files, event));
  const chosen = h('input', { type: 'file', id: 'picture-file', accept: KINDS.join(','), multiple: true, hidden: true, 'aria-hidden': 'true', tabindex: '-1' });
  chosen.addEventListener('change', () => { addPictures(chosen.files); chosen.value = ''; });
  const mode = h('select', { id: 'mode', 'aria-label': t('mode') }, modes.map((name) => h('option', { value: name, selected: name === (now?.mode ?? page.mode) }, t(`mode_${name}`))));
  mode.addEventListener('change', () => (fresh ? page.chooseMode(mode.value) : page.act({ kind: 'mode', mode: mode.value })));
  const folder = session === 'fleet' ? h('select', { id: 'folder', 'aria-label': t('folder') }, page.places().map((name) => h('option', { value: name, title: name }, name.split('/').slice(-2).join('/')))) : '';
  form.replaceChildren(
    menu.box,
    h('div', { id: 'waits', role: 'status', hidden: true }),
    h('div', { class: asked ? 'field compact' : 'field' },
      h('div', { id: 'thumbs', class: 'thumbs' }), message,
      h('div', { class: 'row tools' },
        session === 'fleet' ? '' : iconButton('picture', t('picture.add'), () => chosen.click()), chosen, folder, mode,
        h('span', { class: 'grow', role: 'status', id: 'working' }, now?.working && !asked ? page.workingSign() : ''),
        now?.working ? h('button', { type: 'button', id: 'cancel', onclick: () => page.act({ kind: 'cancel' }) }, icon('stop'), t('cancel')) : '',
        h('button', { type: 'submit', class: 'main', id: 'send' }, icon('send'), h('span', {}, session === 'fleet' ? t('fleet.queue') : t('send'))))));
  form.onsubmit = (event) => { event.preventDefault(); send(page, message.value.trim()); };
  grow(message);
  drawThumbs();
  drawWaiting(page);
  if (focused) message.focus();
}

/** What the field says while it is empty; less on a narrow screen. */
export function hintOf({ asked, kind, now }) {
  const narrow = matchMedia('(max-width: 60rem)').matches;
  if (asked && kind !== 'approval') return narrow ? t('answer_short') : t('answer_hint');
  if (asked) return narrow ? t('remark_short') : t('remark_hint');
  if (now?.working) return narrow ? t('steer_short') : t('steer_hint');
  return narrow ? t('message_short') : t('message_hint');
}

/** Put a text into the field, for the user to change or send. */
export function fillField(text) {
  const message = at('message');
  message.value = text;
  grow(message);
  message.focus();
  message.setSelectionRange(text.length, text.length);
}

function grow(message) {
  message.style.height = 'auto';
  message.style.height = `${Math.min(message.scrollHeight + 2, innerHeight * 0.35)}px`;
}

function addPictures(files, event) {
  const found = [...files].filter((one) => KINDS.includes(one.type));
  if (found.length) event?.preventDefault();
  for (const one of found) {
    if (one.size > LARGEST) say(t('picture.too_large'));
    else if (pictures.length >= MOST) say(t('picture.too_many', { most: MOST }));
    else pictures.push(one);
  }
  drawThumbs();
}

/** Draw small copies of the pictures; they are painted, because the page may load nothing but its own files. */
function drawThumbs() {
  at('thumbs').replaceChildren(...pictures.map((one, place) => {
    const canvas = h('canvas', { width: 96, height: 72, role: 'img', 'aria-label': one.name || t('picture.sent') });
    createImageBitmap(one).then((image) => {
      const scale = Math.max(96 / image.width, 72 / image.height);
      canvas.getContext('2d').drawImage(image, (96 - image.width * scale) / 2, (72 - image.height * scale) / 2, image.width * scale, image.height * scale);
    }, () => say(t('picture.unreadable')));
    const remove = () => { pictures.splice(place, 1); drawThumbs(); at('message').focus(); };
    return h('span', { class: 'thumb' }, canvas, iconButton('close', t('picture.remove'), remove));
  }));
}

async function encoded(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let from = 0; from < bytes.length; from += 32768) text += String.fromCharCode(...bytes.subarray(from, from + 32768));
  return btoa(text);
}

/** Send a line. If another session works in the folder, it waits, and a notice says so. */
async function send(page, text) {
  if (!text && !pictures.length) return;
  menu.close();
  if (page.kind === 'consultation' && page.asked && text && !/^[/／]/.test(text)) {
    if (await page.act({ kind: 'choose', question_hash: page.asked, way: { choice: '', text } })) clearField(text);
    return;
  }
  waiting.delete(page.session);
  const files = /^[/／]/.test(text) ? [] : pictures;
  const body = { text, pictures: await Promise.all(files.map(encoded)) };
  const fresh = !page.session || page.session === 'fleet';
  const path = fresh ? 'api/sessions' : `api/sessions/${encodeURIComponent(page.session)}/lines`;
  const whole = fresh ? { ...body, folder: at('folder').value, mode: at('mode').value, model: at('model')?.value ?? '', where: page.session } : body;
  at('send').disabled = true;
  await attempt(page, { session: page.session, path, body: whole, files, tried: 0 });
  if (at('send')) at('send').disabled = false;
}

async function attempt(page, message) {
  message.tried = Date.now();
  try {
    const found = await call(message.path, message.body);
    waiting.delete(message.session);
    taken(page, message, found);
  } catch (error) {
    waiting.delete(message.session);
    if (error.told?.holder) wait(page, { ...message, holder: error.told.holder });
    else say(error.message);
  }
  drawWaiting(page);
}

function taken(page, { session, body: { text, pictures: sent } }, found) {
  if ((drafts.get(session) ?? '').trim() === text) drafts.delete(session);
  if (page.session !== session) return;
  clearField(text);
  if (sent.length) { pictures = []; drawThumbs(); }
  if (found.waiting) say(t('queued'));
  if (found.session && found.session !== session) page.goTo(found.session, text, found.result);
  else if (found.result) page.takeResult(text, found.result);
  if (found.result?.choices) menu.offer(found.result.choices);
}

function clearField(text) {
  const message = at('message');
  if (message.value.trim() !== text) return;
  message.value = '';
  grow(message);
}

/** Keep a message until its folder is free, and try again when the other session has ended its work. */
function wait(page, message) {
  waiting.set(message.session, message);
  if (page.session === message.session) { clearField(message.body.text); pictures = []; drawThumbs(); }
  looking ||= setInterval(() => {
    if (!waiting.size) { clearInterval(looking); looking = 0; }
    for (const one of waiting.values()) {
      const works = page.sessions.find((other) => other.id === one.holder)?.status === 'works';
      if (!works && Date.now() - one.tried > RETRY_MS) attempt(page, one);
    }
  }, LOOK_MS);
}

/** Say which session has the folder that the message in the field waits for. */
function drawWaiting(page) {
  const [notice, message] = [at('waits'), waiting.get(page.session)];
  if (!notice) return;
  notice.hidden = !message;
  if (!message) return;
  const stop = () => { waiting.delete(page.session); pictures = message.files; drawThumbs(); drawWaiting(page); fillField(message.body.text); };
  notice.replaceChildren(h('span', { class: 'waiting-message' }, message.body.text), h('span', { class: 'grow' }, t('busy.waits')), h('a', { href: `#${message.holder}` }, t('busy.look')),
    h('button', { type: 'button', id: 'stop-waiting', onclick: stop }, t('busy.stop')));
}
