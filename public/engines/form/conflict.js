/* Shows what somebody else has changed in a record meanwhile, with a choice for each field. */

import { newId, tag } from './dom.js';
import { button, message, showProblem } from './messages.js';
import { shown } from './record.js';
import { labelOf, sameValue } from './schema.js';

/**
 * The fields that somebody else has changed: `mine` and `theirs` are the values of the form and of
 * the stored record, `before` those that the form began with.
 */
export function changedFields(members, { before, mine, theirs }) {
  const [old, own, other] = [before, mine, theirs].map((values) => new Map(Object.entries(values)));
  return members
    .filter(({ name }) => !sameValue(old.get(name), other.get(name)))
    .filter(({ name }) => !sameValue(own.get(name), other.get(name)))
    .map((member) => ({
      ...member,
      mine: own.get(member.name),
      theirs: other.get(member.name),
      isMine: !sameValue(old.get(member.name), own.get(member.name)),
    }));
}

/**
 * Shows the changed fields. `choose` gets the chosen values by name, once each field that both have
 * changed has a choice.
 */
export function showConflict(top, changed, { say, lang, root }, choose) {
  const rows = changed.map((one) => fieldChoice(one, { say, lang, root }));
  const use = button(say('use'), () => {
    const open = rows.find((row) => row.chosen() === undefined);
    if (open !== undefined) return open.refuse();
    return choose(Object.fromEntries(rows.map((row) => [row.name, row.chosen().value])));
  });
  showProblem(
    top,
    message(say('moved')),
    tag('p', {}, say('compare')),
    ...rows.map(({ element }) => element),
    tag('p', { className: 'waymark-actions' }, use),
  );
}

/** The choice of one field: the own value or theirs. */
function fieldChoice({ name, schema, mine, theirs, isMine }, { say, lang, root }) {
  const group = newId();
  const error = tag('p', { className: 'waymark-error', id: `${group}-error`, hidden: true });
  const option = (value, word, checked) => {
    const control = tag('input', {
      type: 'radio',
      name: group,
      checked,
      'aria-describedby': error.id,
    });
    const text = tag('span', {}, `${say(word)} `, shown(value, schema, { say, lang, root }));
    return { value, control, element: tag('label', {}, control, text) };
  };
  const options = [option(mine, 'mine', false), option(theirs, 'theirs', !isMine)];
  return {
    name,
    element: tag(
      'fieldset',
      { className: 'waymark-field' },
      tag('legend', {}, labelOf(name, schema)),
      error,
      tag('div', { className: 'waymark-choices' }, ...options.map(({ element }) => element)),
    ),
    chosen: () => options.find(({ control }) => control.checked),
    refuse() {
      error.textContent = say('decide');
      error.hidden = false;
      options[0].control.focus();
    },
  };
}
