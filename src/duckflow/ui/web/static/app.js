// The page: one stream from the server, drawn as it comes; what the user wants goes back as a command.

import { call, clock, difference, h, isPlain, moment, prose, setTexts, t } from './dom.js';
import { counted, drawFleet, drawRun } from './fleet.js';
import { chip, drawDetails } from './panels.js';
import { drawQuestion } from './questions.js';

const NAME = 'Duckflow';
const at = (id) => document.getElementById(id);
let folders = [];
let modes = [];
let session = '';
let stream = null;
let now = null;
let lastSeq = 0;
let asked = null;
let sessions = [];
let fleet = null;
let notify = false;
let following = true;

history.replaceState(null, '', location.pathname + location.hash);
start().catch((error) => say(error.message));

async function start() {
  const found = await call('api/texts');
  setTexts(found.texts);
  folders = found.folders;
  modes = found.modes;
  document.documentElement.lang = found.language;
  at('skip').textContent = t('skip');
  at('conversation').setAttribute('aria-label', t('conversation'));
  at('sessions').setAttribute('aria-label', t('sessions'));
  at('details').setAttribute('aria-label', t('details'));
  notify = 'Notification' in window && Notification.permission === 'granted';
  addEventListener('hashchange', () => open(location.hash.slice(1)));
  addEventListener('keydown', keys);
  at('conversation').addEventListener('wheel', noteReading, { passive: true });
  at('conversation').addEventListener('touchmove', noteReading, { passive: true });
  at('conversation').addEventListener('keyup', noteReading);
  new ResizeObserver(toEnd).observe(at('conversation'));
  drawTop();
  drawComposer();
  open(location.hash.slice(1));
}

function noteReading() {
  const list = at('conversation');
  requestAnimationFrame(() => { following = list.scrollHeight - list.scrollTop - list.clientHeight < 80; });
}

/** Keep the newest in sight, unless the reader has gone back. */
function toEnd() {
  const list = at('conversation');
  if (following) list.scrollTop = list.scrollHeight;
}

function keys(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (event.key === '/' && !typing) { event.preventDefault(); at('message').focus(); }
  if (event.key === 'Escape' && now?.working && !at('evidence').open) act({ kind: 'cancel' });
}

/** Look at a session; without one, at the form for a new one. */
function open(id) {
  stream?.close();
  session = id; following = true; now = null; lastSeq = 0; asked = null;
  at('conversation').replaceChildren();
  at('details').replaceChildren();
  at('fleet').hidden = true;
  at('run').hidden = true;
  at('conversation').hidden = id === 'fleet';
  drawQuestion(at('question'), null, act);
  drawLive(['', '', 0, '']);
  drawTop();
  drawComposer();
  show('main');
  listen();
}

function listen() {
  stream = new EventSource(`api/stream?session=${encodeURIComponent(session)}&after=${lastSeq}`);
  const on = (name, take) => stream.addEventListener(name, (event) => take(JSON.parse(event.data)));
  on('sessions', (found) => { noticeSessions(found); sessions = found; drawSessions(); });
  on('fleet', takeFleet);
  on('entry', addEntry);
  on('now', (found) => { now = found; drawTop(); drawComposer(); drawDetails(at('details'), now, act); });
  on('question', takeQuestion);
  on('live', drawLive);
  stream.onopen = () => at('top').classList.remove('away');
  stream.onerror = () => {
    at('top').classList.add('away');
    if (stream.readyState === EventSource.CLOSED) say(t('gone'));
  };
}

function addEntry(entry) {
  if (entry.seq <= lastSeq) return;
  lastSeq = entry.seq;
  const list = at('conversation');
  if (entry.back) for (const one of [...list.children]) if (Number(one.dataset.seq) >= entry.back) one.remove();
  const inside = entry.kind === 'reply' ? prose(entry.text) : [h('div', { class: 'text' }, entry.text)];
  if (entry.output.length) inside.push(h('pre', { class: 'code' }, [entry.hidden ? t('more_lines', { count: entry.hidden }) + '\n' : '', entry.output.join('\n')].join('')));
  if (entry.difference.length) inside.push(h('details', {}, h('summary', {}, isPlain(entry.difference) ? t('diff.plain') : t('diff.title')), h('div', { class: 'wide' }, difference(entry.difference))));
  if (entry.evidence) inside.push(chip(session, entry.evidence));
  if (entry.kind === 'message' && !isRun()) inside.push(goBack(entry.seq));
  list.append(h('li', { class: `entry ${entry.kind} ${entry.tone}`, 'data-seq': entry.seq },
    h('span', { class: 'who' }, entry.kind === 'reply' ? NAME : t(`who.${entry.kind}`), ' ', h('time', { datetime: entry.at }, clock(entry.at))), ...inside));
  toEnd();
  if (entry.kind === 'reply') drawLive(['', '', 0]);
}

const isRun = () => session.startsWith('run-');

/** What can be done about an earlier message: back to before it, or on from there in another session. */
function goBack(seq) {
  const back = (part) => h('button', { type: 'button', 'data-back': part, onclick: () => act({ kind: 'rewind', before: seq, part }) }, t(`back.${part}`));
  const fork = async () => {
    try { location.hash = (await call(`api/sessions/${session}/fork`, { before: seq })).session; } catch (error) { say(error.message); }
  };
  return h('details', { class: 'back' }, h('summary', {}, t('back.title')),
    h('p', { class: 'row' }, back('both'), back('conversation'), back('files'), h('button', { type: 'button', 'data-back': 'fork', onclick: fork }, t('back.fork'))));
}

function drawLive([reply, output, wait, thinking]) {
  const box = at('live');
  const open = Boolean(box.querySelector('details')?.open);
  box.hidden = !reply && !output && !wait && !thinking;
  box.replaceChildren(...[thinking ? [h('details', { open }, h('summary', {}, t('thinking')), h('pre', { class: 'code' }, thinking))] : [], reply ? prose(reply) : [], output ? [h('pre', { class: 'code' }, output)] : [], wait ? [h('p', { class: 'faint' }, t('waiting', { seconds: Math.round(wait) }))] : []].flat());
  box.scrollTop = box.scrollHeight;
}

function takeQuestion(question) {
  const fresh = question && question.question_hash !== asked;
  if ((question?.question_hash ?? null) === asked && question) return;
  asked = question?.question_hash ?? null;
  drawQuestion(at('question'), question, act);
  drawComposer();
  document.title = question ? `● ${NAME}` : NAME;
  if (fresh) { at('asked')?.focus({ preventScroll: false }); tell(t('notice.question'), question.question); }
}

function tell(title, body) {
  if (notify && document.hidden) new Notification(title, { body, tag: session, icon: 'duck.svg' });
}

/** Send a command; what the server says against it is shown. */
async function act(command) {
  try {
    const found = await call(`api/sessions/${encodeURIComponent(session)}/commands`, command);
    say(found.waiting ? t('queued') : '');
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

let silence = 0;
function say(message) {
  at('notice').textContent = message;
  clearTimeout(silence);
  silence = setTimeout(() => { at('notice').textContent = ''; }, 12000);
}

function noticeSessions(found) {
  for (const one of found) {
    const before = sessions.find((other) => other.id === one.id);
    if (one.id !== session && one.status === 'asks' && before && before.status !== 'asks') tell(t('notice.question'), one.title);
    if (before?.status === 'works' && one.status === 'open') tell(t('notice.done'), one.title);
  }
}

/** The fleet as it is now; what a run asks is worth a notice, too. */
function takeFleet(found) {
  const waited = fleet?.counts?.waiting ?? 0;
  if (fleet && (found?.counts.waiting ?? 0) > waited) tell(t('notice.question'), t('fleet.title'));
  fleet = found;
  drawSessions();
  drawComposer();
  if (session === 'fleet' && fleet) drawFleet(at('fleet'), fleet);
  if (isRun() && fleet?.run) drawRun(at('run'), fleet.run, act, say);
}

function drawSessions() {
  const runs = fleet ? h('a', { class: `runs${session === 'fleet' || isRun() ? ' current' : ''}${fleet.counts.waiting ? ' asks' : ''}`, href: '#fleet', 'aria-current': session === 'fleet' ? 'page' : null },
    h('span', { class: 'title' }, t('fleet.title')), h('span', { class: 'status' }, fleet.error || counted(fleet))) : '';
  at('sessions').replaceChildren(
    h('a', { class: session ? 'new' : 'new current', href: '#', 'aria-current': session ? null : 'page', onclick: () => { if (!location.hash) open(''); } }, t('new')), runs,
    h('ul', {}, sessions.map((one) => h('li', {}, h('a', { href: `#${one.id}`, class: one.status + (one.id === session ? ' current' : ''), 'aria-current': one.id === session ? 'page' : null },
      h('span', { class: 'title' }, one.title),
      h('span', { class: 'faint cut' }, one.workspace),
      h('span', { class: 'status' }, t(`session.${one.status}`), ' · ', moment(one.updated)))))));
}

function drawTop() {
  const button = (name) => h('button', { type: 'button', class: 'only-narrow', 'aria-controls': name, onclick: () => show(name) }, t(name === 'main' ? 'conversation' : name));
  at('top').replaceChildren(
    h('img', { src: 'duck.svg', alt: '', width: 24, height: 24 }), h('h1', {}, NAME),
    h('span', { class: 'away-sign', role: 'status' }, t('away')),
    now ? h('span', { class: 'faint cut grow', title: now.workspace }, now.workspace, ' · ', now.model) : h('span', { class: 'grow' }),
    now ? h('span', { class: 'faces', role: 'img', 'aria-label': now.vitals.map((one) => `${one.label} ${one.value.toFixed(2)}`).join(', ') }, now.vitals.map((one) => `${one.face}${one.value.toFixed(2)} `).join('')) : '',
    ...['sessions', 'main', 'details'].map(button),
    'Notification' in window && !notify ? h('button', { type: 'button', id: 'notify', onclick: allow }, t('notice.allow')) : '');
}

async function allow() {
  notify = (await Notification.requestPermission()) === 'granted';
  drawTop();
}

/** On a narrow screen one part is seen at a time. */
function show(name) {
  at('frame').dataset.shown = name;
}

function drawComposer() {
  const form = at('composer');
  const fresh = !session || session === 'fleet';
  const places = session === 'fleet' ? [...new Set([...(fleet?.runs ?? []).map((one) => one.repository), ...folders])] : folders;
  const kind = fresh ? `new ${session} ${places.length}` : `session ${now?.working} ${now?.mode} ${asked}`;
  form.hidden = isRun();
  if (form.dataset.kind === kind) return;
  const typed = at('message')?.value ?? '';
  const focused = document.activeElement?.id === 'message';
  form.dataset.kind = kind;
  const message = h('textarea', { id: 'message', rows: asked ? 1 : 3, maxlength: 100000, placeholder: asked ? t('answer_first') : t('message_hint'), 'aria-label': t('message') });
  message.value = typed;
  message.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); } });
  const mode = h('select', { id: 'mode', 'aria-label': t('mode') }, modes.map((name) => h('option', { value: name, selected: name === (now?.mode ?? 'ask') }, t(`mode_${name}`))));
  if (!fresh) mode.addEventListener('change', () => act({ kind: 'mode', mode: mode.value }));
  const folder = !fresh ? '' : h('label', {}, t('folder'), ' ', h('select', { id: 'folder' }, places.map((name) => h('option', { value: name }, name))));
  form.replaceChildren(message, h('div', { class: 'row' }, folder, mode,
    h('span', { class: 'grow faint', role: 'status', id: 'working' }, now?.working ? t('working') : ''),
    now?.working ? h('button', { type: 'button', id: 'cancel', onclick: () => act({ kind: 'cancel' }) }, t('cancel')) : '',
    h('button', { type: 'submit', class: 'good', id: 'send' }, session === 'fleet' ? t('fleet.queue') : t('send'))));
  if (focused) message.focus();
}

at('composer').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = at('message').value.trim();
  if (!text) return;
  at('send').disabled = true;
  try {
    if (session && session !== 'fleet') {
      if (await act({ kind: 'say', text })) at('message').value = '';
    } else {
      const found = await call('api/sessions', { folder: at('folder').value, text, mode: at('mode').value, where: session || 'here' });
      at('message').value = '';
      location.hash = found.session;
    }
  } catch (error) {
    say(error.message);
  } finally {
    if (at('send')) at('send').disabled = false;
  }
});
