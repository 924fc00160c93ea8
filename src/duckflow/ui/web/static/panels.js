// Everything beside the conversation: goal, plan, changes, files, vitals, cost.

import { charts } from './chart.js';
import { difference } from './difference.js';
import { call, h, iconButton, percent, t } from './dom.js';
import { filesPanel } from './files.js';

const TABS = ['goal', 'plan', 'changes', 'files', 'vitals', 'cost'];
let chosen = 'goal';
let shownOf = '';

/** Draw the tabs and the chosen one; `act` sends a command, `close` hides the details. */
export function drawDetails(aside, now, act, close, again = false) {
  const focused = document.activeElement?.id;
  const kept = !again && shownOf === now.id && chosen === 'files' && aside.querySelector('#panel .files');
  if (kept) return; // what is looked at does not change with the state
  shownOf = now.id;
  const pick = (name) => { chosen = name; drawDetails(aside, now, act, close, true); document.getElementById(`tab-${name}`).focus(); };
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) { event.preventDefault(); pick(offered[(offered.indexOf(chosen) + step + offered.length) % offered.length]); }
  };
  const offered = now.id.startsWith('run-') ? TABS.filter((name) => name !== 'files') : TABS;
  if (!offered.includes(chosen)) chosen = 'goal';
  const tabs = offered.map((name) => h('button', {
    type: 'button', id: `tab-${name}`, role: 'tab', 'aria-selected': String(name === chosen), 'aria-controls': 'panel',
    tabindex: name === chosen ? '0' : '-1', onclick: () => pick(name), onkeydown: move,
  }, t(`tab.${name}`)));
  const body = h('div', { id: 'panel', role: 'tabpanel', 'aria-labelledby': `tab-${chosen}`, tabindex: '0' }, PANELS[chosen](now, act));
  aside.replaceChildren(h('div', { class: 'details-head' }, h('div', { role: 'tablist', class: 'tabs', 'aria-label': t('tab.label') }, tabs), iconButton('close', t('close'), close, { class: 'plain only-narrow' })), body);
  if (focused?.startsWith('tab-')) document.getElementById(focused)?.focus();
}

const PANELS = {
  plan: (now) => [
    ...now.plans.map((plan) => h('section', { class: plan.active ? 'plan active' : 'plan' },
      h('h2', {}, plan.name), h('p', { class: 'faint' }, plan.words),
      h('p', {}, plan.goal),
      plan.criteria.length ? h('p', { class: 'faint' }, t('plan.criteria')) : '',
      plan.criteria.length ? h('ul', { class: 'criteria' }, plan.criteria.map((one) => h('li', {}, one))) : '',
      h('ol', { class: 'tree' }, plan.steps.map((step) => h('li', { class: step.is }, mark(step), h('div', {}, h('b', {}, step.name), h('span', { class: 'status' }, step.status), step.description ? h('p', {}, step.description) : '', tasks(step.tasks))))))),
    now.plans.length ? null : h('p', { class: 'faint' }, t('plan.none')),
    now.tasks.length ? h('section', {}, h('h2', {}, t('plan.tasks')), tasks(now.tasks)) : null,
  ].filter(Boolean),

  files: (now) => filesPanel(now.id),

  goal: (now) => {
    const goal = now.goal;
    if (!goal) return h('p', { class: 'faint' }, t('goal.none'));
    return [
      h('p', { class: 'wish' }, goal.text),
      h('p', { class: 'faint' }, t('goal.loops', { loops: goal.loops, limit: goal.limit ?? '–' }), goal.outcome ? ` · ${goal.outcome}` : ''),
      h('ul', { class: 'requirements' }, goal.requirements.map((one) => h('li', {},
        h('span', { class: 'score' }, h('meter', { min: 0, max: 1, low: 0.3, high: 0.8, optimum: 1, value: one.score, 'aria-label': t('goal.score') }), percent(one.score)),
        h('span', {}, one.text, ' ', h('span', { class: 'faint' }, one.priority)),
        h('span', { class: 'chips' }, one.evidence.map(({ id, words }) => chip(now.id, id, words)))))),
      goal.requirements.length ? null : h('p', { class: 'faint' }, t('goal.no_parts')),
      goal.score === null ? null : h('p', {}, t('goal.whole', { score: percent(goal.score) })),
      goal.quality ? h('p', {}, goal.quality) : null,
      goal.missing.length ? h('ul', {}, goal.missing.map((one) => h('li', {}, one))) : null,
    ].filter(Boolean);
  },

  vitals: (now) => [
    h('ul', { class: 'vitals' }, now.vitals.map((one) => h('li', {}, h('span', { 'aria-hidden': 'true' }, one.face), ' ', one.label, ' ', h('b', {}, one.value.toFixed(2))))),
    charts(now.points),
  ],

  changes: (now, act) => {
    const box = h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': t('tab.changes') }, h('p', { class: 'faint' }, t('loading')));
    call(`api/sessions/${now.id}/difference`).then(
      (found) => box.replaceChildren(found.difference.length ? difference(found.difference) : h('p', { class: 'faint' }, t('changes.none'))),
      (error) => box.replaceChildren(h('p', { class: 'bad' }, error.message)));
    if (now.id.startsWith('run-')) return [box];
    return [h('p', { class: 'row' },
      h('button', { type: 'button', disabled: !now.undoable, onclick: () => act({ kind: 'undo', wanted: '1' }) }, t('changes.undo')),
      h('button', { type: 'button', onclick: () => act({ kind: 'undo', wanted: 'redo' }) }, t('changes.redo'))), box];
  },

  cost: (now) => {
    if (!now.cost.length) return h('p', { class: 'faint' }, t('cost.none'));
    const usd = (value) => (value === null ? '–' : `$${value.toFixed(4)}`);
    const known = now.cost.filter((one) => one.usd !== null);
    return h('div', { class: 'wide' }, h('table', { class: 'figures' },
      h('thead', {}, h('tr', {}, ['tier', 'calls', 'input', 'output', 'usd'].map((name) => h('th', { scope: 'col' }, t(`cost.${name}`))))),
      h('tbody', {}, now.cost.map((one) => h('tr', {}, h('th', { scope: 'row' }, one.tier), [one.calls, one.input, one.output].map((value) => h('td', { class: 'figure' }, value.toLocaleString())), h('td', { class: 'figure' }, usd(one.usd))))),
      h('tfoot', {}, h('tr', {}, h('th', { scope: 'row', colspan: 4 }, t('cost.sum')), h('td', { class: 'figure' }, usd(known.length ? known.reduce((sum, one) => sum + one.usd, 0) : null))))));
  },
};

function mark(one) {
  return h('span', { class: 'mark', role: 'img', 'aria-label': one.status }, one.mark);
}

function tasks(list) {
  return list.length ? h('ul', { class: 'tree' }, list.map((one) => h('li', { class: one.is }, mark(one), h('div', {}, one.name, h('span', { class: 'status' }, one.status))))) : '';
}

/** A button that shows a piece of evidence. */
export function chip(session, id, words = id) {
  return h('button', { type: 'button', class: 'chip', 'aria-label': words === id ? t('evidence.show', { id }) : null, title: t('evidence.show', { id }), onclick: () => showEvidence(session, id) }, words);
}

async function showEvidence(session, id) {
  const dialog = document.getElementById('evidence');
  const close = h('button', { type: 'button', onclick: () => dialog.close() }, t('close'));
  let inside;
  try {
    const found = await call(`api/sessions/${session}/evidence/${encodeURIComponent(id)}`);
    inside = [h('h2', {}, found.id), h('p', {}, found.title), h('pre', { class: 'output', tabindex: '0', role: 'region', 'aria-label': found.title }, found.text)];
  } catch (error) {
    inside = [h('h2', {}, id), h('p', {}, error.message)];
  }
  dialog.replaceChildren(...inside, h('div', { class: 'row end' }, close));
  dialog.setAttribute('aria-label', t('evidence.show', { id }));
  dialog.showModal();
}
