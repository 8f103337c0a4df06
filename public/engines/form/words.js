/* What a form says; enginedata.words replaces any of it. */

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
  look: 'Please look again at what is marked',
  pattern: 'This does not have the form that is expected.',
  short: 'At least {count} characters, please.',
  long: 'At most {count} characters, please.',
  few: 'At least {count}, please.',
  many: 'At most {count}, please.',
  twice: 'Each only once, please.',
  low: 'This has to be more than {limit}.',
  high: 'This has to be less than {limit}.',
  json: 'This is not JSON.',
  accept: 'This has to be ticked.',
  down: 'The data host {host} does not answer. Nothing is lost: try again in a moment.',
  refused: 'The data host has refused this.',
  says: 'The data host says: {message}',
  missing: 'There is no such record, or not any more.',
  moved: 'Somebody else has changed this record meanwhile. Load the page again to see it.',
  quote: 'If you report this, quote',
  unnamed: 'The address does not say which record this is about.',
};

/** The words of a form: `say(name, {…})` puts values in place of what stands in braces. */
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
