// The page: one stream from the server, drawn as it comes; what the user wants goes back as a command.

import { drawComposer, fillField, hintOf } from './composer.js';
import { addAside, addEntry, drawAgents, clearConversation, drawLive, drawPending, showQuestion, toEnd, watchReading, workingSign } from './conversation.js';
import { at, call, h, iconButton, say, setTexts, t } from './dom.js';
import { openFile } from './files.js';
import { drawFleet, drawRun } from './fleet.js';
import { drawDetails } from './panels.js';
import { drawQuestion } from './questions.js';
import { drawSidebar } from './sidebar.js';
import { drawStart } from './start.js';

const NAME = 'Duckflow';
const DETAILS = 'duckflow-details';

/** What is shown, and what the parts of the page may do. */
const page = {
  session: '', sessions: [], folders: [], modes: [], fleet: null, now: null, asked: null, mode: 'ask',
  open, show, act, allow,
  offersNotices: () => 'Notification' in window && !notify && Notification.permission === 'default',
  goTo(session, typed, result) { carried = result && { session, typed, result }; location.hash = session; },
  takeResult,
  chooseMode(mode) { page.mode = mode; drawComposer(page); },
  places: () => [...new Set([...(page.fleet?.runs ?? []).map((one) => one.repository), ...page.folders])],
  workingSign: () => workingSign(t('working')),
};
let stream = null;
let lastSeq = 0;
let notify = false;
let carried = null;

history.replaceState(null, '', location.pathname + location.hash);
start().catch((error) => say(error.message));

async function start() {
  const found = await call('api/texts');
  setTexts(found.texts);
  page.folders = found.folders;
  page.modes = found.modes;
  document.documentElement.lang = found.language;
  at('skip').textContent = t('skip');
  at('conversation').setAttribute('aria-label', t('conversation'));
  at('sessions').setAttribute('aria-label', t('sessions'));
  at('details').setAttribute('aria-label', t('details'));
  at('start').setAttribute('aria-label', t('new'));
  at('fleet').setAttribute('aria-label', t('fleet.title'));
  at('run').setAttribute('aria-label', t('fleet.state'));
  at('live').setAttribute('aria-label', t('working'));
  at('pending').setAttribute('aria-label', t('pending.label'));
  notify = 'Notification' in window && Notification.permission === 'granted';
  addEventListener('hashchange', () => open(location.hash.slice(1)));
  addEventListener('keydown', keys);
  matchMedia('(max-width: 60rem)').addEventListener('change', () => { at('message').placeholder = hintOf(page); });
  watchReading();
  open(location.hash.slice(1));
}

function keys(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (event.key === '/' && !typing) { event.preventDefault(); at('message').focus(); }
  if (event.key !== 'Escape' || at('evidence').open) return;
  if (at('frame').dataset.shown !== 'main') show('main');
  else if (page.now?.working) act({ kind: 'cancel' });
}

/** Look at a session; without one, at the start page. */
function open(id) {
  stream?.close();
  Object.assign(page, { session: id, now: null, asked: null });
  lastSeq = 0;
  clearConversation();
  for (const name of ['fleet', 'run']) at(name).hidden = true;
  at('details').replaceChildren();
  at('conversation').hidden = id === 'fleet' || id === '';
  document.title = NAME;
  drawQuestion(at('question'), null, act);
  drawStart(page);
  drawTop();
  drawComposer(page);
  drawSidebar(page);
  show('main');
  listen();
  if (carried?.session === id) takeResult(carried.typed, carried.result);
  carried = null;
  if (!id && matchMedia('(min-width: 50rem)').matches) at('message').focus({ preventScroll: true });
}

function listen() {
  stream = new EventSource(`api/stream?session=${encodeURIComponent(page.session)}&after=${lastSeq}`);
  const on = (name, take) => stream.addEventListener(name, (event) => take(JSON.parse(event.data)));
  on('sessions', (found) => { noticeSessions(found); page.sessions = found; drawSidebar(page); drawTop(); });
  on('fleet', takeFleet);
  on('entry', takeEntry);
  on('now', (found) => { page.now = found; drawAgents(found.agents); drawTop(); drawComposer(page); drawDetails(at('details'), found, act, () => show('main')); });
  on('question', takeQuestion);
  on('live', drawLive);
  on('waiting', (found) => drawPending(found, t('pending.steers')));
  stream.onopen = () => at('top').classList.remove('away');
  stream.onerror = () => {
    at('top').classList.add('away');
    if (stream.readyState === EventSource.CLOSED) say(t('gone'));
  };
}

function takeEntry(entry) {
  if (entry.seq <= lastSeq) return;
  lastSeq = entry.seq;
  addEntry(entry, page.session, act, (path) => openFile(page.session, path));
  if (entry.asks && entry.asks === page.asked) showQuestion(page.asked);
}

function takeQuestion(question) {
  const asked = question?.question_hash ?? null;
  if (asked === page.asked && question) return;
  page.asked = asked;
  page.kind = question?.kind;
  drawQuestion(at('question'), question, act, page.session.startsWith('run-') ? null : () => at('message'));
  drawComposer(page);
  showQuestion(asked);
  document.title = question ? `● ${NAME}` : NAME;
  if (!question) return;
  if (!at('message').value) at('asked')?.focus({ preventScroll: true });
  requestAnimationFrame(toEnd);
  tell(t('notice.question'), question.question);
}

function tell(title, body) {
  if (notify && document.hidden) new Notification(title, { body, tag: page.session, icon: 'duck.svg' });
}

/** Send a command; what the server says against it is shown. */
async function act(command) {
  try {
    const found = await call(`api/sessions/${encodeURIComponent(page.session)}/commands`, command);
    say(found.waiting ? t('queued') : '');
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

/** What a typed command said, chose or left: shown in the conversation, never sent to the model. */
function takeResult(typed, result) {
  if (page.session) addAside(typed, result);
  else if (result.lines.length) say(result.lines.join('\n'));
  if (result.field) fillField(result.field);
  if (result.goes_to !== null && result.goes_to !== undefined) location.hash = result.goes_to;
}

function noticeSessions(found) {
  for (const one of found) {
    const before = page.sessions.find((other) => other.id === one.id);
    if (one.id !== page.session && one.status === 'asks' && before && before.status !== 'asks') tell(t('notice.question'), one.title);
    if (before?.status === 'works' && one.status === 'open') tell(t('notice.done'), one.title);
  }
}

/** The fleet as it is now; what a run asks is worth a notice, too. */
function takeFleet(found) {
  const waited = page.fleet?.counts?.waiting ?? 0;
  if (page.fleet && (found?.counts.waiting ?? 0) > waited) tell(t('notice.question'), t('fleet.title'));
  page.fleet = found;
  drawSidebar(page);
  if (page.session === 'fleet' && found) { drawFleet(at('fleet'), found); drawComposer(page); }
  if (page.session.startsWith('run-') && found?.run) drawRun(at('run'), found.run, act, say);
}

function drawTop() {
  const { now, session } = page;
  const title = page.sessions.find((one) => one.id === session)?.title;
  const aside = now ? iconButton('panel', t('details'), toggleDetails, { class: 'plain', 'aria-controls': 'details', id: 'toggle-details' }) : '';
  at('top').replaceChildren(
    iconButton('menu', t('sessions'), () => show('sessions'), { class: 'plain only-narrow', 'aria-controls': 'sessions' }),
    h('div', { class: 'grow top-words' },
      session && session !== 'fleet' ? h('h1', { class: 'cut' }, title ?? now?.goal?.text ?? NAME) : '',
      now ? h('p', { class: 'cut faint', title: now.workspace }, `${now.workspace.split('/').pop()} · ${now.model} · ${now.mode}`) : ''),
    h('span', { class: 'away-sign', role: 'status' }, t('away')),
    now ? h('span', { class: 'faces', role: 'img', 'aria-label': now.vitals.map((one) => `${one.label} ${one.value.toFixed(2)}`).join(', '), title: now.vitals.map((one) => `${one.label} ${one.value.toFixed(2)}`).join(' · ') }, now.vitals.map((one) => one.face).join('')) : '',
    aside);
}

async function allow() {
  notify = (await Notification.requestPermission()) === 'granted';
  drawSidebar(page);
}

/** On a narrow screen one part is seen at a time; on a wide one the details can be put away. */
function show(name) {
  at('frame').dataset.shown = name;
  at('frame').dataset.details = localStorage.getItem(DETAILS) ?? 'open';
}

function toggleDetails() {
  if (matchMedia('(max-width: 60rem)').matches) { show(at('frame').dataset.shown === 'details' ? 'main' : 'details'); return; }
  localStorage.setItem(DETAILS, at('frame').dataset.details === 'open' ? 'closed' : 'open');
  show('main');
}
