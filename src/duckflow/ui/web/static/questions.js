// The open question, inside the conversation. An answer carries the hash of what was shown, so it can't be given to anything else.

import { h, say, t } from './dom.js';
import { difference, isPlain } from './difference.js';

/** Draw a question into its section; `act(command)` sends the answer. `field()` is the message field, if there is one. */
export function drawQuestion(section, question, act, field = null) {
  section.hidden = question === null;
  section.replaceChildren(...(question === null ? [] : question.kind === 'approval' ? approval(section, question, act) : consultation(question, act, field)));
  section.className = question === null ? '' : `question ${question.risk ?? ''}`;
  section.setAttribute('aria-label', t('question.label'));
}

function approval(section, question, act) {
  const reason = h('input', { id: 'reason', type: 'text', maxlength: 2000, autocomplete: 'off', placeholder: t('question.reason_hint') });
  const answer = (yes, always) => act({ kind: 'answer', question_hash: question.question_hash, answer: { yes, always, reason: yes ? '' : reason.value.trim() } });
  const yes = h('button', { type: 'button', id: 'yes', class: 'main', onclick: () => answer(true, false) }, t('question.yes'));
  const always = question.always ? h('button', { type: 'button', id: 'always', title: question.always, onclick: () => answer(true, true) }, t('question.always')) : null;
  const no = h('button', { type: 'button', id: 'no', onclick: () => answer(false, false) }, t('question.no'));
  reason.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); answer(false, false); } });
  const plain = isPlain(question.difference);
  const title = plain ? t('diff.plain') : t('diff.title');
  const box = question.difference.length ? h('div', { class: plain ? 'scroll plain-text' : 'scroll', tabindex: '0', id: 'difference', role: 'region', 'aria-label': title }, difference(question.difference)) : null;
  const unseen = h('p', { class: 'faint', id: 'unseen', role: 'status' });
  const row = h('div', { class: 'answers' }, unseen,
    h('div', { class: 'row' }, yes, always, h('span', { class: 'refuse' }, h('label', { class: 'grow' }, h('span', { class: 'hidden' }, t('question.reason')), reason), no)));
  if (box) guard(section, box, row, unseen, [yes, always].filter(Boolean));
  return [
    h('p', { class: 'asks' }, t('question.asks')),
    h('h2', { id: 'asked', tabindex: '-1' }, question.question),
    h('p', { class: 'facts' }, question.facts.map((fact) => h('span', {}, fact))),
    ...(question.files ?? []).map((one) => h('p', { class: 'special' }, one)),
    question.intent ? h('p', { class: 'intent' }, h('span', { class: 'faint' }, `${t('question.intent')}: `), question.intent) : null,
    question.expected ? null : h('p', {}, question.rationale),
    box, more(question), row,
  ].filter(Boolean);
}

/** Everything else about the question; open from the start when the risk is high. */
function more(question) {
  const points = (title, list) => (list.length ? [h('dt', {}, t(title)), ...list.map((one) => h('dd', {}, one))] : []);
  const inside = [
    question.expected ? points('question.rationale', [question.rationale]) : [],
    points('question.impact', question.impact),
    points('question.alternatives', question.alternatives),
    points('question.covers', question.always ? [question.always] : []),
  ].flat();
  if (!inside.length) return null;
  return h('details', { class: 'more', open: !['low', 'medium'].includes(question.risk) }, h('summary', {}, t('question.more')), h('dl', { class: 'points' }, inside));
}

/** A yes counts only once all of the difference was on the screen. */
function guard(section, box, row, unseen, buttons) {
  const scroller = section.closest?.('#conversation') ?? section;
  const resized = new ResizeObserver(() => look());
  const whole = () => box.clientHeight > 0 && box.scrollHeight - box.scrollTop - box.clientHeight < 4;
  const look = () => {
    if (!whole() || box.getBoundingClientRect().bottom > row.getBoundingClientRect().top + 8) return;
    buttons.forEach((one) => { one.disabled = false; });
    unseen.textContent = '';
    for (const one of [box, scroller]) one.removeEventListener('scroll', look);
    resized.disconnect();
  };
  buttons.forEach((one) => { one.disabled = true; });
  unseen.textContent = t('question.unseen');
  for (const one of [box, scroller]) { one.addEventListener('scroll', look); resized.observe(one); }
  box.addEventListener('keyup', () => { if (whole()) row.scrollIntoView?.({ block: 'end' }); });
  requestAnimationFrame(() => requestAnimationFrame(look));
}

/** Choices. Words for them come from the message field, so that there is only one; a fleet's run has none and gets its own. */
function consultation(question, act, field) {
  const own = field ? null : h('input', { id: 'words', type: 'text', maxlength: 20000, autocomplete: 'off', placeholder: t('question.words_hint') });
  const choose = async (choice, needs) => {
    const words = own ?? field();
    const text = words.value.trim();
    if (needs && !text) {
      words.focus();
      words.setAttribute('aria-invalid', 'true');
      if (!own) say(t('question.words_needed'));
      return;
    }
    const taken = await act({ kind: 'choose', question_hash: question.question_hash, way: { choice, text } });
    if (taken && !own && field().value.trim() === text) { field().value = ''; field().dispatchEvent(new Event('input')); }
  };
  own?.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); choose('', true); } });
  return [
    h('p', { class: 'asks' }, t('question.asks')),
    h('h2', { id: 'asked', tabindex: '-1' }, t('question.consultation')),
    h('p', { class: 'situation' }, question.question),
    question.choices.length === 0 ? '' : h('ol', { class: 'choices' }, question.choices.map((one) => h('li', {}, h('button', { type: 'button', 'data-choice': one.name, onclick: () => choose(one.name, one.words) }, one.label)))),
    own && h('div', { class: 'row' }, h('label', { class: 'grow' }, h('span', { class: 'hidden' }, t('question.words')), own),
      h('button', { type: 'button', id: 'only-words', onclick: () => choose('', true) }, t('question.only_words'))),
  ].filter(Boolean);
}
