/* Fields for a choice among given values. */

import { labelled, surroundings, tag } from './dom.js';
import { sameValue } from './schema.js';

/** A choice of one value: a drop-down list. */
export function createSelect(spec, choices) {
  const { isRequired, say } = spec;
  const none = tag('option', { value: '' }, isRequired ? say('choose') : say('nothing'));
  const options = choices.map(({ label }, at) => tag('option', { value: String(at) }, label));
  const control = tag('select', { required: isRequired }, none, ...options);
  return labelled(spec, control, {
    get: () => choices[Number(control.value || -1)]?.value,
    set: (value) => {
      const at = choices.findIndex((choice) => sameValue(choice.value, value));
      control.value = at === -1 ? '' : String(at);
    },
  });
}

/** A choice of one of few values: radio buttons. */
export function createRadios(spec, choices) {
  const parts = surroundings(spec);
  const controls = choices.map((_, at) =>
    tag('input', {
      type: 'radio',
      name: parts.id,
      id: at === 0 ? parts.id : `${parts.id}-${at}`,
      required: true,
    }),
  );
  return {
    target: controls[0],
    label: parts.label,
    element: tag(
      'fieldset',
      { className: 'waymark-field', 'aria-describedby': parts.describedBy },
      tag('legend', {}, ...parts.labelParts),
      ...parts.around,
      tag(
        'div',
        { className: 'waymark-choices' },
        ...choices.map(({ label }, at) => tag('label', {}, controls[at], tag('span', {}, label))),
      ),
    ),
    get: () => choices[controls.findIndex(({ checked }) => checked)]?.value,
    set: (value) => {
      for (const [at, choice] of choices.entries()) {
        controls[at].checked = sameValue(choice.value, value);
      }
    },
    problem: () => controls[0]?.validationMessage ?? '',
    mark: (message) => parts.mark(message, []),
  };
}

/** A choice of several values: a group of checkboxes. */
export function createCheckboxes(spec, choices) {
  const { schema, say } = spec;
  const parts = surroundings(spec);
  const controls = choices.map((_, at) =>
    tag('input', { type: 'checkbox', id: at === 0 ? parts.id : `${parts.id}-${at}` }),
  );
  const get = () => {
    const ticked = choices.filter((_, at) => controls[at].checked).map(({ value }) => value);
    return ticked.length === 0 && !spec.isRequired ? undefined : ticked;
  };
  return {
    target: controls[0],
    label: parts.label,
    element: tag(
      'fieldset',
      { className: 'waymark-field', 'aria-describedby': parts.describedBy },
      tag('legend', {}, ...parts.labelParts),
      ...parts.around,
      tag(
        'div',
        { className: 'waymark-choices' },
        ...choices.map(({ label }, at) => tag('label', {}, controls[at], tag('span', {}, label))),
      ),
    ),
    get,
    set: (value) => {
      for (const [at, choice] of choices.entries()) {
        controls[at].checked =
          Array.isArray(value) && value.some((one) => sameValue(one, choice.value));
      }
    },
    problem: () => checkCount(get() ?? [], schema, say),
    mark: (message) => parts.mark(message, []),
  };
}

/** The error of a list with too few, too many or repeated items; empty for none. */
export function checkCount(items, { minItems, maxItems, uniqueItems }, say) {
  if (items.length < (minItems ?? 0)) return say('few', { count: minItems });
  if (items.length > (maxItems ?? Infinity)) return say('many', { count: maxItems });
  const isTwice = items.some((one, at) =>
    items.slice(0, at).some((other) => sameValue(one, other)),
  );
  return uniqueItems === true && isTwice ? say('twice') : '';
}
