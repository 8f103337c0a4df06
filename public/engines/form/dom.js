/* Creates the elements of a form. Text of a record or a schema is never parsed as HTML. */

let lastId = 0;

/** The HTML of an element with the values that its controls have now. */
export function htmlOf(element) {
  for (const control of element.querySelectorAll('input')) {
    if (['checkbox', 'radio'].includes(control.type)) control.defaultChecked = control.checked;
    else if (control.type !== 'file') control.defaultValue = control.value;
  }
  for (const control of element.querySelectorAll('textarea')) control.defaultValue = control.value;
  for (const option of element.querySelectorAll('option')) {
    option.defaultSelected = option.selected;
  }
  return element.outerHTML;
}

/** An element with properties, attributes (`aria-…`, `role`) and children. */
export function tag(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (key.includes('-') || key === 'role') element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

export function newId() {
  lastId += 1;
  return `waymark-${lastId}`;
}

/** A link; undefined unless its URL is http, https, mailto or tel (no `javascript:`). */
export function link(href, text, properties = {}) {
  if (typeof href !== 'string' || !URL.canParse(href, document.baseURI)) return undefined;
  const { protocol, href: address } = new URL(href, document.baseURI);
  if (!['http:', 'https:', 'mailto:', 'tel:'].includes(protocol)) return undefined;
  return tag('a', { ...properties, href: address }, text);
}

/**
 * The parts of a field besides its control: label, help text, and a place for its error.
 * `describedBy` is the aria-describedby of the control.
 */
export function surroundings({ name, label, isRequired, schema, say }) {
  const id = newId();
  const help = helpOf(schema);
  const helpElement = help && tag('p', { className: 'waymark-help', id: `${id}-help` }, help);
  const error = tag('p', { className: 'waymark-error', id: `${id}-error`, hidden: true });
  const optional = tag('span', { className: 'waymark-optional' }, ` ${say('optional')}`);
  return {
    id,
    name,
    label,
    labelParts: isRequired ? [label] : [label, optional],
    around: helpElement === undefined ? [error] : [helpElement, error],
    describedBy: helpElement === undefined ? `${id}-error` : `${id}-help ${id}-error`,
    mark(message, controls) {
      error.textContent = message;
      error.hidden = message === '';
      error.parentElement?.classList.toggle('waymark-wrong', message !== '');
      for (const control of controls) {
        if (message === '') control.removeAttribute('aria-invalid');
        else control.setAttribute('aria-invalid', 'true');
      }
    },
  };
}

function helpOf({ description }) {
  return typeof description === 'string' && description !== '' ? description : undefined;
}

/** A control with its label above it. */
export function labelled(spec, control, { get, set, check = () => '' }) {
  const parts = surroundings(spec);
  control.id = parts.id;
  control.setAttribute('aria-describedby', parts.describedBy);
  return {
    target: control,
    label: parts.label,
    element: tag(
      'div',
      { className: 'waymark-field' },
      tag('label', { htmlFor: parts.id }, ...parts.labelParts),
      ...parts.around,
      control,
    ),
    get,
    set,
    problem() {
      control.setCustomValidity('');
      control.setCustomValidity(control.validity.valid ? check(get()) : '');
      return control.validationMessage;
    },
    mark: (message) => parts.mark(message, [control]),
  };
}
