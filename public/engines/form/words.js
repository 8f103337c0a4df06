/* The texts of a form; enginedata.words can replace each of them. */

const english = {
  insert: 'Save',
  edit: 'Save changes',
  delete: 'Delete',
  sending: 'Sending …',
  reading: 'Fetching the record …',
  cancel: 'Cancel',
  another: 'Add another',
  again: 'Try again',
  optional: '(optional)',
  choose: 'Choose …',
  add: 'Add: {what}',
  remove: 'Remove: {what}',
  yes: 'Yes',
  no: 'No',
  nothing: '–',
  inserted: 'Saved. Thank you.',
  edited: 'Your changes are saved.',
  deleted: 'Deleted.',
  unchanged: 'Nothing has changed, so nothing was sent.',
  sure: 'This record will be deleted:',
  look: 'Please correct the marked fields',
  pattern: 'This does not have the expected format.',
  short: 'At least {count} characters, please.',
  long: 'At most {count} characters, please.',
  few: 'At least {count}, please.',
  many: 'At most {count}, please.',
  twice: 'Use each value only once, please.',
  low: 'This must be more than {limit}.',
  high: 'This must be less than {limit}.',
  json: 'This is not JSON.',
  accept: 'Please tick this box.',
  down: 'The data host {host} does not answer. Your input is kept: try again in a moment.',
  refused: 'The data host has refused this request.',
  says: 'The data host says: {message}',
  missing: 'This record does not exist, or was deleted.',
  moved: 'Somebody else has changed this record meanwhile.',
  compare: 'For each field, choose which value to keep. Nothing is stored until you save.',
  mine: 'Yours:',
  theirs: 'Stored now:',
  decide: 'Both of you have changed this field: choose one of the values.',
  use: 'Use these values',
  chosen: 'The form has the values that you have chosen. Check it, then save it.',
  changed: 'Somebody else has changed this record meanwhile. This is how it is now:',
  offline: 'The server does not answer. Your input is kept: try again in a moment.',
  unsure:
    'You have sent this form before, and no answer came. Send it again: it is stored only once.',
  stored: 'What you sent first has been stored, although no answer came. Send this as well?',
  resend: 'Send as another record',
  forbidden: 'You may not do this. Sign in, or ask the operator of this site for access.',
  quote: 'If you report this, quote',
  unnamed: 'The address names no record: it needs its id.',
};

/** The texts of a form: `say(name, {…})` replaces the names in braces by values. */
export function wordsOf(own) {
  const words = new Map(Object.entries(english));
  for (const [name, text] of Object.entries(own ?? {})) {
    if (words.has(name) && typeof text === 'string') words.set(name, text);
  }
  return (name, values = {}) =>
    (words.get(name) ?? name).replace(/\{([a-z]+)\}/g, (braces, key) =>
      Object.hasOwn(values, key) ? String(values[key]) : braces,
    );
}
