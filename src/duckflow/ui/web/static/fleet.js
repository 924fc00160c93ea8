// The fleet: all runs in a table, and what stands above one of them.

import { call, h, moment, percent, t } from './dom.js';

/** Draw the table of all runs. */
export function drawFleet(section, fleet) {
  section.hidden = false;
  const columns = ['state', 'request', 'repository', 'verdict', 'updated'];
  const rows = fleet.runs.map((run) => h('tr', { class: run.state },
    h('td', { class: 'state' }, run.label),
    h('td', {}, h('a', { href: `#run-${run.id}` }, run.request.split('\n')[0]),
      run.asks ? h('div', { class: 'asks' }, run.asks) : '', run.error ? h('div', { class: 'bad' }, run.error) : ''),
    h('td', { class: 'where', title: run.repository }, run.repository.split('/').pop(), run.branch ? h('div', { class: 'faint' }, run.branch) : ''),
    h('td', {}, verdict(run)),
    h('td', { class: 'faint' }, moment(run.updated * 1000))));
  section.replaceChildren(
    h('h1', { id: 'fleet-title', tabindex: '-1' }, t('fleet.title')),
    h('p', { class: 'faint' }, fleet.error || counted(fleet)),
    rows.length ? h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': t('table') }, h('table', { class: 'figures runs', 'aria-labelledby': 'fleet-title' },
      h('thead', {}, h('tr', {}, columns.map((name) => h('th', { scope: 'col' }, t(`fleet.${name}`))))), h('tbody', {}, rows))) : '');
}

/** Draw how a run stands, and what can be done about it; `act` sends a command. */
export function drawRun(section, run, act, fail) {
  section.hidden = false;
  const button = (name, act) => h('button', { type: 'button', id: `run-${name}`, onclick: act }, t(`fleet.${name}`));
  const again = () => call(`api/sessions/run-${run.id}/retry`, {}).catch((error) => fail(error.message));
  section.replaceChildren(
    h('p', { class: 'row' }, h('b', { class: `state ${run.state}` }, run.label), verdict(run),
      h('span', { class: 'faint' }, `${run.id} · ${run.repository} · `, t('fleet.minutes', { minutes: run.minutes })),
      run.branch ? h('code', {}, run.branch) : '',
      run.can_cancel ? button('cancel', () => act({ kind: 'cancel' })) : '',
      run.can_retry ? button('retry', again) : '',
      h('a', { href: `api/sessions/run-${run.id}/patch`, download: `${run.id}.patch`, id: 'run-patch' }, t('fleet.patch'))),
    run.error ? h('p', { class: 'bad' }, run.error) : '');
}

/** How many runs are in each state, in words. */
export function counted(fleet) {
  const counts = Object.entries(fleet.counts).map(([state, count]) => `${count} ${t(`fleet.is_${state}`)}`);
  return counts.join(' · ') || t('fleet.none');
}

function verdict(run) {
  const score = run.score === null ? '' : percent(run.score);
  return h('span', { class: 'verdict' }, [run.outcome, score].filter(Boolean).join(' '));
}
