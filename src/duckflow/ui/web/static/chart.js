// Vitals and the limit over time, with what moved them: an SVG to look at, a table to read.

import { clock, h, s, t } from './dom.js';

const WIDE = 320, HIGH = 120, LOW = 70, EDGE = 6, LEFT = 26;
const VITALS = ['mood', 'focus', 'stamina'];

export function charts(points) {
  if (!points.length) return h('p', { class: 'faint' }, t('chart.none'));
  const x = (place) => LEFT + (points.length < 2 ? 0 : (place / (points.length - 1)) * (WIDE - LEFT - EDGE));
  return h('div', { class: 'charts' }, vitals(points, x), legend(VITALS), loops(points, x), legend(['loops', 'limit']), table(points));
}

function vitals(points, x) {
  const y = (value) => EDGE + (1 - value) * (HIGH - 2 * EDGE);
  const drawn = picture(HIGH, t('chart.vitals'));
  for (const value of [0, 0.5, 1]) drawn.append(...grid(y(value), value.toFixed(1)));
  for (const name of VITALS) drawn.append(s('polyline', { class: `line ${name}`, points: points.map((one, place) => `${x(place)},${y(one[name])}`).join(' ') }));
  points.forEach((one, place) => {
    if (!one.why.length) return;
    drawn.append(s('circle', { class: 'dot', cx: x(place), cy: y(one.focus), r: 3 }, s('title', {}, `${clock(one.at)} ${one.why.join(' · ')}`)));
  });
  return drawn;
}

function loops(points, x) {
  const most = Math.max(4, ...points.map((one) => Math.max(one.loops, one.limit ?? 0)));
  const y = (value) => EDGE + (1 - value / most) * (LOW - 2 * EDGE);
  const drawn = picture(LOW, t('chart.loops'));
  for (const value of [0, most]) drawn.append(...grid(y(value), String(value)));
  const steps = (name) => {
    const known = points.map((one, place) => [place, one[name]]).filter(([, value]) => value !== null);
    return known.map(([place, value], at) => (at ? `${x(place)},${y(known[at - 1][1])} ` : '') + `${x(place)},${y(value)}`).join(' ');
  };
  for (const name of ['loops', 'limit']) drawn.append(s('polyline', { class: `line ${name}`, points: steps(name) }));
  return drawn;
}

function picture(high, label) {
  return s('svg', { viewBox: `0 0 ${WIDE} ${high}`, role: 'img', 'aria-label': label });
}

function grid(at, label) {
  return [s('line', { class: 'grid', x1: LEFT, x2: WIDE - EDGE, y1: at, y2: at }), s('text', { class: 'axis', x: LEFT - 4, y: at + 3 }, label)];
}

function legend(names) {
  return h('p', { class: 'legend', 'aria-hidden': 'true' }, names.map((name) => h('span', { class: name }, t(`chart.${name}`))));
}

function table(points) {
  const columns = [...VITALS, 'loops', 'limit'];
  const rows = points.filter((one) => one.why.length).slice(-60).reverse();
  return h('details', {}, h('summary', {}, t('chart.table')), h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': t('chart.table') }, h('table', { class: 'figures' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('chart.when')), columns.map((name) => h('th', { scope: 'col' }, t(`chart.${name}`))), h('th', { scope: 'col' }, t('chart.why')))),
    h('tbody', {}, rows.map((one) => h('tr', {}, h('td', {}, clock(one.at)), columns.map((name) => h('td', { class: 'figure' }, cell(one[name], name))), h('td', {}, one.why.join(' · '))))))));
}

function cell(value, name) {
  if (value === null) return '–';
  return VITALS.includes(name) ? value.toFixed(2) : String(value);
}
