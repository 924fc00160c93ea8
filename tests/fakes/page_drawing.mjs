// Draws parts of the page on a document that only remembers, and says "drawn" if they are as they should be.

import assert from 'node:assert';
import { pathToFileURL } from 'node:url';

class Item {
  constructor(name) { this.name = name; this.attributes = {}; this.children = []; this.listeners = {}; this.scrollHeight = 900; this.scrollTop = 0; this.clientHeight = 100; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(name, does) { (this.listeners[name] ??= []).push(does); }
  removeEventListener(name, does) { this.listeners[name] = this.listeners[name].filter((one) => one !== does); }
  append(...found) { this.children.push(...found); }
  replaceChildren(...found) { this.children = found; }
  getBoundingClientRect() { return { bottom: 0, top: 500 }; }
  fire(name) { for (const does of [...(this.listeners[name] ?? [])]) does({}); }
  get textContent() { return this.children.map((one) => (one instanceof Item ? one.textContent : one)).join(''); }
  set textContent(text) { this.children = [text]; }
  all(test) { return this.children.filter((one) => one instanceof Item).flatMap((one) => [...(test(one) ? [one] : []), ...one.all(test)]); }
  tag(name) { return this.all((one) => one.name === name); }
  id(name) { return this.all((one) => one.attributes.id === name)[0]; }
}
globalThis.document = { createElement: (name) => new Item(name), createElementNS: (_, name) => new Item(name), documentElement: { lang: 'en' } };
globalThis.requestAnimationFrame = (does) => does();
const resize = new Set();
globalThis.ResizeObserver = class { constructor(does) { this.does = does; } observe() { resize.add(this.does); } disconnect() { resize.delete(this.does); } };

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}.js`));
const { setTexts, t } = await load('dom');
const { difference } = await load('difference');
const { markup } = await load('markup');
const { charts } = await load('chart');
const { drawQuestion } = await load('questions');
const { drawFleet, drawRun } = await load('fleet');
const EVIL = '<img src=x onerror=alert(1)>';

setTexts({ 'a.b': 'x {y}' });
assert.equal(t('a.b', { y: '{y}$&' }), 'x {y}$&');
assert.equal(t('no.such'), 'no.such');

const sides = difference([['title', '+++ b/x'], ['hunk', '@@'], ['both', 1, 'same', 1, 'same'], ['changed', 2, EVIL, 2, 'new'], ['changed', 0, null, 3, 'more']]);
const rows = sides.tag('tbody')[0].children;
assert.deepEqual(rows.map((row) => row.attributes.class), ['title', 'hunk', 'both', 'changed', 'changed']);
assert.equal(rows[3].children[1].children.at(-1), EVIL);
assert.equal(rows[4].children[1].attributes.class, 'line none');
assert.equal(difference([['title', 'a plan']]).attributes.class, 'document');

const drawn = markup([['p', {}, EVIL, ['strong', {}, 'b']], ['script', {}, 'x'], ['img', { src: 'x', onerror: 'x' }], ['a', { href: 'javascript:x' }, 'y'], ['a', { href: 'https://example.com' }, 'z'], ['pre', { language: 'py' }, ['span', { class: 'keyword' }, 'def'], ['span', { class: 'evil' }, EVIL]]]);
assert.deepEqual(drawn.map((one) => one.name), ['p', 'span', 'span', 'span', 'a', 'div'], 'only names on the list');
assert.equal(drawn[0].children[0], EVIL, 'text stays text');
assert.deepEqual([Object.keys(drawn[2].attributes), Object.keys(drawn[3].attributes), drawn[4].attributes.rel], [[], [], 'noopener noreferrer']);
assert.deepEqual(drawn[5].tag('code')[0].children.map((one) => one.attributes.class), ['code-keyword', undefined]);

const headings = markup([['h1', {}, 'a'], ['h3', {}, 'b'], ['blockquote', {}, ['h2', {}, 'c']], ['h5', {}, 'd']]).flatMap((one) => [one, ...one.tag('p')]);
assert.deepEqual(headings.map((one) => one.attributes['aria-level']).filter(Boolean), ['2', '3', '3', '4'], 'no level is left out');

const point = { at: '2026-01-01T00:00:00Z', mood: 1, focus: 0.5, stamina: 0, loops: 1, limit: null, why: [] };
const chart = charts([point, { ...point, limit: 9, why: ['limit set to 9'] }]);
assert.equal(chart.tag('polyline').length, 5);
assert.equal(chart.tag('circle').length, 1);
assert.match(chart.tag('circle')[0].textContent, /limit set to 9/);
assert.match(chart.tag('table')[0].textContent, /limit set to 9/);

const sent = [];
const asked = { kind: 'approval', question_hash: 'hash', risk: 'low', question: EVIL, facts: [], intent: '', rationale: 'r', impact: [], alternatives: [], difference: [['both', 1, 'x', 1, 'x']], always: 'all of it' };
const section = new Item('section');
drawQuestion(section, asked, (command) => sent.push(command));
const difference_box = section.id('difference');
assert.ok(section.id('yes').disabled && section.id('always').disabled, 'its end was not seen');
Object.assign(difference_box, { scrollHeight: 0, clientHeight: 0 });
for (const does of [...resize]) does();
assert.ok(section.id('yes').disabled, 'nothing is seen of a box that is not shown');
Object.assign(difference_box, { scrollHeight: 900, clientHeight: 900 });
for (const does of [...resize]) does();
assert.ok(!section.id('yes').disabled, 'all of it is seen on a larger screen');
section.id('yes').disabled = section.id('always').disabled = true;
assert.equal(resize.size, 0, 'nobody watches any more');
drawQuestion(section, asked, (command) => sent.push(command));
section.id('difference').scrollTop = 800;
section.id('difference').fire('scroll');
assert.ok(!section.id('yes').disabled && !section.id('always').disabled);
section.id('reason').value = ' because ';
for (const name of ['yes', 'always', 'no']) section.id(name).fire('click');
assert.deepEqual(sent.map((one) => [one.question_hash, one.answer.yes, one.answer.always, one.answer.reason]), [['hash', true, false, ''], ['hash', true, true, ''], ['hash', false, false, 'because']]);
drawQuestion(section, null, () => {});
assert.ok(section.hidden && section.children.length === 0, 'answered: gone');
drawQuestion(section, { kind: 'consultation', question_hash: 'h2', question: 'How?', choices: [{ name: 'go_on', label: 'On', words: false }] }, (command) => sent.push(command));
section.id('words').value = '';
section.all((one) => one.attributes['data-choice'])[0].fire('click');
assert.deepEqual(sent.at(-1), { kind: 'choose', question_hash: 'h2', way: { choice: 'go_on', text: '' } });

const field = { value: ' mine ', attributes: {}, focused: 0, focus() { this.focused += 1; }, setAttribute(name, value) { this.attributes[name] = value; }, dispatchEvent() {} };
const [status] = [new Item('p')];
document.getElementById = () => status;
drawQuestion(section, { kind: 'consultation', question_hash: 'h3', question: 'How?', choices: [{ name: 'describe', label: 'D', words: true }] }, (command) => sent.push(command), () => field);
assert.equal(section.tag('input').length, 0, 'the message field is the only field');
section.tag('button')[0].fire('click');
await Promise.resolve();
assert.deepEqual([sent.at(-1).way, field.value, field.focused], [{ choice: 'describe', text: 'mine' }, '', 0]);
section.tag('button')[0].fire('click');
assert.deepEqual([sent.at(-1).question_hash, sent.length, field.focused, field.attributes['aria-invalid']], ['h3', 5, 1, 'true'], 'it needs words first');

const run = { id: 'r1', state: 'waiting', label: 'waits', repository: '/a/shop', request: `${EVIL}\nmore`, updated: 1, minutes: 0, outcome: '', score: null, error: '', branch: '', asks: 'Write it?', can_cancel: true, can_retry: false };
drawFleet(section, { error: '', counts: { waiting: 1 }, runs: [run] });
assert.deepEqual(section.tag('a').map((one) => [one.attributes.href, one.textContent]), [['#run-r1', EVIL]]);
drawRun(section, run, (command) => sent.push(command), () => {});
section.id('run-cancel').fire('click');
assert.deepEqual([sent.at(-1).kind, section.id('run-retry')], ['cancel', undefined]);
// The height of a long conversation is measured once a frame, not for each of its entries.
const parts = {};
const frames = [];
let measured = 0;
document.getElementById = (id) => (parts[id] ??= new Item(id));
Object.defineProperty(document.getElementById('conversation'), 'scrollHeight', { get: () => { measured += 1; return 900; } });
globalThis.requestAnimationFrame = (does) => frames.push(does);
const { addEntry } = await load('conversation');
for (let seq = 1; seq <= 100; seq += 1) addEntry({ seq, at: '2026-01-01T00:00:00Z', kind: 'note', tone: '', text: 'x', path: '', output: [], difference: [], evidence: '', asks: '', back: 0 }, 's', () => {}, () => {});
assert.equal(parts.entries.children.length, 100);
for (const does of frames) does();
assert.equal(measured, 1);
console.log('drawn');
