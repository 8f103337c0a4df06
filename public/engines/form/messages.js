/* Shows the messages of a form, so that screen readers announce them. */

import { tag } from './dom.js';

/**
 * Shows a list of errors with links to their fields, and focuses it; `texts` has the errors that
 * the host has found, by field.
 */
export function showErrors(top, wrong, say, texts = new Map()) {
  const items = wrong.map((field) => {
    // A label may be a question.
    const mark = /[?!.:]$/.test(field.label) ? '' : ':';
    const text = `${field.label}${mark} ${texts.get(field) ?? field.problem()}`;
    const item = tag('a', { href: `#${field.target?.id ?? ''}` }, text);
    item.addEventListener('click', (event) => {
      event.preventDefault();
      field.target?.focus();
    });
    return tag('li', {}, item);
  });
  showProblem(top, message(say('look')), tag('ul', {}, ...items));
}

/** Shows a problem, and focuses it. */
export function showProblem(top, ...nodes) {
  const box = tag('div', { className: 'waymark-problem', role: 'alert', tabIndex: -1 }, ...nodes);
  top.replaceChildren(box);
  box.focus();
}

/** Shows a status message. */
export function showStatus(top, text, ...more) {
  const line = tag('p', {}, text);
  top.replaceChildren(tag('div', { className: 'waymark-status', role: 'status' }, line, ...more));
}

/** Replaces the form by a final message and links. */
export function showEnd(body, text, next) {
  const end = tag('div', { className: 'waymark-status', role: 'status', tabIndex: -1 });
  end.append(tag('p', {}, text), tag('p', { className: 'waymark-actions' }, ...next));
  body.replaceChildren(end);
  end.focus();
}

/** The text for a failure. */
export function failureText(failure, say) {
  if (failure.code === undefined) console.error(failure);
  switch (failure.code) {
    case 'down':
      return failure.isOwn ? say('offline') : say('down', { host: failure.host });
    case 'not_found':
      return say('missing');
    case 'precondition_failed':
      return say('moved');
    case 'unauthenticated':
    case 'forbidden':
      return failure.isOwn ? say('forbidden') : says(failure, say);
    default:
      return says(failure, say);
  }
}

function says({ message: text, isOwn }, say) {
  if (!text) return say('refused');
  return isOwn ? text : say('says', { message: text });
}

/** A message, with the id of the failure if the host sent one. */
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
