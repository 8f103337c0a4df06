/* What a form tells the person before it, and how: so that a screen reader says it too. */

import { tag } from './dom.js';

/**
 * A list of what is wrong, each item leading to its field; it has the focus, so it is read out.
 */
export function complain(top, wrong, say, only) {
  const items = wrong.map((field) => {
    const text = `${field.label}: ${only ?? field.problem()}`;
    const item = tag('a', { href: `#${field.target?.id ?? ''}` }, text);
    item.addEventListener('click', (event) => {
      event.preventDefault();
      field.target?.focus();
    });
    return tag('li', {}, item);
  });
  complainOf(top, message(say('look')), tag('ul', {}, ...items));
}

export function complainOf(top, ...nodes) {
  const box = tag('div', { className: 'waymark-problem', role: 'alert', tabIndex: -1 }, ...nodes);
  top.replaceChildren(box);
  box.focus();
}

export function tell(top, text, ...more) {
  const line = tag('p', {}, text);
  top.replaceChildren(tag('div', { className: 'waymark-told', role: 'status' }, line, ...more));
}

/** The end of what the page was for. */
export function finish(body, text, next) {
  const end = tag('div', { className: 'waymark-told', role: 'status', tabIndex: -1 });
  end.append(tag('p', {}, text), tag('p', { className: 'waymark-actions' }, ...next));
  body.replaceChildren(end);
  end.focus();
}

export function sayOf(failure, say) {
  if (failure.code === undefined) console.error(failure);
  switch (failure.code) {
    case 'down':
      return say('down', { host: failure.host });
    case 'not_found':
      return say('missing');
    case 'precondition_failed':
      return say('moved');
    default:
      return failure.message ? say('says', { message: failure.message }) : say('refused');
  }
}

export function message(text, failure, say) {
  const line = tag('p', { className: 'waymark-problem-title' }, text);
  if (failure?.id === undefined) return line;
  const quote = tag('p', {}, `${say('quote')} `, tag('code', {}, String(failure.id)));
  return tag('div', {}, line, quote);
}

export function button(text, act) {
  const element = tag('button', { type: 'button', className: 'waymark-plain' }, text);
  element.addEventListener('click', () => void act());
  return element;
}
