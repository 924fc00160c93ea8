// The conversation: entries as they are stored, the reply that is being written, output of commands, and what still waits.

import { at, call, clock, copyButton, h, iconButton, say, t } from './dom.js';
import { difference, isPlain } from './difference.js';
import { markup } from './markup.js';
import { chip } from './panels.js';

let following = true;
let planned = false;

/** Begin to follow the newest entry unless the reader has scrolled back. */
export function watchReading() {
  const list = at('conversation');
  const note = () => requestAnimationFrame(() => { following = list.scrollHeight - list.scrollTop - list.clientHeight < 80; });
  for (const event of ['wheel', 'touchmove']) list.addEventListener(event, note, { passive: true });
  list.addEventListener('keyup', note);
  const gutter = () => at('composer').style.setProperty('--gutter', `${list.offsetWidth - list.clientWidth}px`);
  new ResizeObserver(() => { toEnd(); gutter(); }).observe(list);
  new ResizeObserver(toEnd).observe(at('entries'));
}

/** Forget the entries of another session. */
export function clearConversation() {
  following = true;
  at('entries').replaceChildren();
  at('pending').replaceChildren();
  drawAgents([]);
  drawLive({ reply: [], output: '', wait_s: 0, thinking: '' });
}

/** Keep the newest in sight; a question that is higher than the window begins at its top. */
export function toEnd() {
  if (planned) return; // once a frame: a long conversation would be measured again for each of its entries
  planned = true;
  requestAnimationFrame(() => { planned = false; scrollToEnd(); });
}

function scrollToEnd() {
  const [list, question] = [at('conversation'), at('question')];
  if (!following) return;
  const high = !question.hidden && question.offsetHeight > list.clientHeight - 40;
  list.scrollTop = high ? question.offsetTop - 16 : list.scrollHeight;
}

/** Show a question that has just come, even to a reader who has scrolled back. */
export function showQuestion(hash) {
  for (const one of document.querySelectorAll('#entries > [data-asks]')) one.hidden = one.dataset.asks === hash;
  if (hash) following = true;
  toEnd();
}

/** Add an entry; `session` is undefined in a fleet run, where nothing can be taken back. */
export function addEntry(entry, session, act, openFile) {
  const list = at('entries');
  if (entry.back) for (const one of [...list.children]) if (Number(one.dataset.seq) >= entry.back) one.remove();
  const inside = (DRAWN[entry.kind] ?? line)(entry, openFile);
  if (entry.kind === 'message' && !session.startsWith('run-')) inside.push(goBack(entry.seq, session, act));
  if (entry.evidence) inside.splice(1, 0, chip(session, entry.evidence));
  list.append(h('li', { class: `entry ${entry.kind} ${entry.tone}`, 'data-seq': entry.seq, 'data-asks': entry.asks || null },
    h('span', { class: 'hidden' }, `${t(`who.${entry.kind}`)} `), h('time', { datetime: entry.at }, clock(entry.at)), ...inside));
  if (entry.kind === 'reply') drawLive({ reply: [], output: '', wait_s: 0, thinking: '' });
  toEnd();
}

const DRAWN = {
  message: (entry) => [
    h('div', { class: 'text' }, entry.text),
    entry.pictures.length ? h('div', { class: 'thumbs' }, entry.pictures.map((digest) => h('img', { src: `api/pictures/${digest}`, alt: t('picture.sent'), loading: 'lazy' }))) : null,
  ].filter(Boolean),
  reply: (entry) => [h('div', { class: 'prose' }, markup(entry.nodes)), copyButton(() => entry.text)],
  question: (entry) => {
    const [first, ...rest] = entry.text.split('\n');
    return [h('details', { class: 'answered' }, h('summary', {}, first), h('div', { class: 'text' }, rest.join('\n')), ...extra(entry))];
  },
};

function line(entry, openFile) {
  const text = h('div', { class: 'text' }, entry.text);
  if (entry.path) text.append(' ', iconButton('file', t('files.open', { path: entry.path }), () => openFile(entry.path), { class: 'plain small' }));
  return [text, ...extra(entry)];
}

function extra(entry) {
  const found = [];
  if (entry.output.length) {
    const shown = [entry.hidden ? t('more_lines', { count: entry.hidden }) + '\n' : '', entry.output.join('\n')].join('');
    found.push(h('pre', { class: 'output', tabindex: '0', role: 'region', 'aria-label': t('output') }, shown));
  }
  if (entry.difference.length) {
    const open = h('div', { class: 'wide' }, difference(entry.difference));
    found.push(h('details', {}, h('summary', {}, isPlain(entry.difference) ? t('diff.plain') : t('diff.title')), open));
  }
  return found;
}

/** What can be done about an earlier message: back to before it, or on from there in another session. */
function goBack(seq, session, act) {
  const back = (part) => h('button', { type: 'button', 'data-back': part, onclick: () => act({ kind: 'rewind', before: seq, part }) }, t(`back.${part}`));
  const fork = async () => {
    try { location.hash = (await call(`api/sessions/${session}/fork`, { before: seq })).session; } catch (error) { say(error.message); }
  };
  return h('details', { class: 'back' }, h('summary', {}, t('back.title')),
    h('p', { class: 'row' }, back('both'), back('conversation'), back('files'), h('button', { type: 'button', 'data-back': 'fork', onclick: fork }, t('back.fork'))));
}

/** Draw what is being written, run or waited for. */
export function drawLive({ reply, output, wait_s: wait, thinking }) {
  const box = at('live');
  const open = Boolean(box.querySelector('details')?.open);
  box.hidden = !reply.length && !output && !wait && !thinking;
  box.replaceChildren(...[
    thinking && !reply.length ? h('details', { open, class: 'thinking' }, h('summary', {}, t('thinking')), h('pre', { class: 'output', tabindex: '0' }, thinking)) : '',
    reply.length ? h('div', { class: 'prose' }, markup(reply)) : '',
    output ? h('pre', { class: 'output', tabindex: '0', role: 'region', 'aria-label': t('output') }, output) : '',
    wait ? h('p', { class: 'faint' }, t('waiting', { seconds: Math.round(wait) })) : '',
  ].filter(Boolean));
  toEnd();
}

/** Draw a line for each agent at work. */
export function drawAgents(lines) {
  const list = at('agents');
  list.hidden = !lines.length;
  list.replaceChildren(...lines.map((one) => h('li', {}, one)));
  toEnd();
}

/** Draw messages that the session has not taken yet. */
export function drawPending(waiting, note) {
  at('pending').replaceChildren(...waiting.map((text) => h('li', { class: 'waiting-message' }, h('span', { class: 'text' }, text), h('span', { class: 'faint' }, note))));
  toEnd();
}

/** Show the result of a command: lines, a difference, or nothing. It is not part of the stored conversation. */
export function addAside(typed, result) {
  if (!result.lines.length && !result.difference.length) return;
  const narrow = matchMedia('(max-width: 40rem)').matches;
  const whole = result.lines.join('\n').replace(/^\n+|\n+$/g, '');
  const text = narrow ? whole.replace(/^( *\/\S.*?\S) {2,}(?=\S)/gm, '$1\n      ') : whole; // a command, then what it does
  const both = /[\u3000-\u9fff\uff00-\uffef]/.test(text) ? ' both-widths' : ''; // columns need letters of exactly one or two widths
  const item = h('li', { class: `entry aside ${result.warns ? 'warning' : ''}` },
    h('div', { class: 'aside-head' }, h('code', {}, typed), text ? copyButton(() => text) : '', iconButton('close', t('close'), () => item.remove())),
    text ? h('pre', { class: `aside-text${both}`, tabindex: '0', role: 'region', 'aria-label': typed }, text) : '',
    result.difference.length ? h('div', { class: 'wide scroll', tabindex: '0', role: 'region', 'aria-label': t('diff.title') }, difference(result.difference)) : '');
  at('entries').append(item);
  following = true;
  toEnd();
}

/** Show that something is being worked on, in words. */
export function workingSign(text) {
  return h('span', { class: 'working' }, h('span', { class: 'dots', 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), text);
}

