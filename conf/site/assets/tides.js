// The engine of the page at /tides/: [engine.tides] of the ini file names this file. An engine is a
// function that gets the answer of get_render, and the page to put it into.
const svg = 'http://www.w3.org/2000/svg';
const wide = 720;
const high = 260;
const top = 5;

export function render({ enginedata: { heading, about, path_m: path, turns } }, { element }) {
  const x = (hour) => (hour / 24) * wide;
  const y = (metres) => high - (metres / top) * high;
  const curve = turns
    .map(({ at, m }, turn) => {
      const before = turns[turn - 1];
      if (before === undefined) return `M${x(at)} ${y(m)}`;
      const middle = x((before.at + at) / 2);
      return `C${middle} ${y(before.m)} ${middle} ${y(m)} ${x(at)} ${y(m)}`;
    })
    .join('');
  const figure = make('svg', { viewBox: `-2 -14 ${wide + 4} ${high + 52}`, class: 'tides', 'aria-hidden': 'true' });
  figure.append(
    make('path', { d: `${curve}V${high}H0Z`, class: 'water' }),
    make('path', { d: curve, class: 'edge' }),
    make('path', { d: `M0 ${y(path)}H${wide}`, class: 'path' }),
    text(wide, y(path) - 8, 'the path', 'end'),
    ...[0, 6, 12, 18, 24].map((hour) => text(x(hour), high + 32, `${hour}:00`, hour === 0 ? 'start' : hour === 24 ? 'end' : 'middle')),
  );
  const list = Object.assign(tag('dl'), { className: 'facts' });
  for (const { at, m } of turns.slice(1, -1)) {
    const row = document.createElement('div');
    const state = m > path ? 'high, the path is under water' : 'low, the path is dry';
    row.append(tag('dt', clock(at)), tag('dd', `${m.toFixed(1)} m: ${state}`));
    list.append(row);
  }
  element.replaceChildren(tag('h1', heading), Object.assign(tag('p', about), { className: 'lead' }), figure, list);
}

function make(name, attributes) {
  const element = document.createElementNS(svg, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function text(left, down, words, anchor) {
  const element = make('text', { x: left, y: down, 'text-anchor': anchor });
  element.textContent = words;
  return element;
}

function tag(name, textContent = '') {
  return Object.assign(document.createElement(name), { textContent });
}

function clock(hours) {
  const minutes = Math.round(hours * 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`;
}
