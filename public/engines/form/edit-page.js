/* The form that inserts or edits a record. It never stores one record twice. */

import { changedFields, showConflict } from './conflict.js';
import { link, tag } from './dom.js';
import { fieldAt, fieldsIn, valuesOf } from './fields.js';
import { newKey } from './host.js';
import { linksOf } from './links.js';
import {
  button,
  failureText,
  message,
  showEnd,
  showErrors,
  showProblem,
  showStatus,
} from './messages.js';
import { dropPending, keepPending } from './pending.js';
import { sameValue } from './schema.js';

/** The unsent values and the vk of the form, kept while the page renders again. */
let latest;

/** The values that a person has changed in the form of a rule before it is rendered again. */
export function draftOf({ id }) {
  const draft = latest?.id === id ? { values: latest.values(), key: latest.key() } : undefined;
  latest = undefined;
  return draft;
}

/**
 * Shows the form with its values; `record` is the stored record, undefined for an insert. `pending`
 * is what was sent before without an answer.
 */
export function showForm(form, { values, record, empty, pending, key }) {
  const shown = new RecordForm(form, { record, empty });
  shown.fill(values, { pending, key });
}

class RecordForm {
  constructor(form, { record, empty }) {
    Object.assign(this, form, { record, empty, before: {}, key: newKey() });
    const { say, action, members, answer } = form;
    this.top = tag('div', { className: 'waymark-top' });
    this.send = tag('button', { type: 'submit', className: 'waymark-send' }, say(action));
    this.trap = trapFor(form);
    this.element = tag(
      'form',
      { noValidate: true },
      this.top,
      ...members.map(({ field }) => field.element),
      this.trap?.element ?? '',
      tag(
        'p',
        { className: 'waymark-actions' },
        this.send,
        link(answer.enginedata.cancel, say('cancel')) ?? '',
      ),
    );
    // A field with an error is checked at each input until it is valid.
    this.element.addEventListener('input', () => {
      for (const field of allFields(members)) if (field.isWrong) check(field);
    });
    this.element.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.send.getAttribute('aria-disabled') !== 'true') void this.submit();
    });
  }

  fill(values, { pending, key }) {
    const { members, record, say, answer, body } = this;
    setValues(members, record ?? {});
    if (record !== undefined) this.before = valuesOf(members);
    setValues(members, values);
    // The vk of a form stays the same until an answer says that the record is stored.
    this.key = (record === undefined ? pending?.key : undefined) ?? key ?? this.key;
    latest = {
      id: answer.id,
      values: () => changes(this.before, valuesOf(members)),
      key: () => this.key,
    };
    body.replaceChildren(this.element);
    if (pending === undefined) return;
    if (record === undefined) showStatus(this.top, say('unsure'));
    else this.restore(pending);
  }

  /** After a reload: whether the changes that were sent are in the record. */
  restore({ values }) {
    const { members, say, answer } = this;
    const stored = new Map(Object.entries(this.before));
    dropPending(answer);
    const isStored = Object.entries(values).every(([name, value]) =>
      sameValue(value ?? undefined, stored.get(name)),
    );
    if (isStored) return showStatus(this.top, say('edited'));
    setValues(members, { ...this.before, ...values });
    return showStatus(this.top, say('unsure'));
  }

  async submit() {
    const { members, action, say, record, answer, records, name } = this;
    const wrong = [...allFields(members)].filter((field) => !check(field));
    if (wrong.length > 0) return showErrors(this.top, wrong, say);
    const own = valuesOf(members);
    const v = record === undefined ? own : changes(this.before, own);
    if (record !== undefined && Object.keys(v).length === 0) {
      return showStatus(this.top, say('unchanged'));
    }
    showStatus(this.top, say('sending'));
    this.send.setAttribute('aria-disabled', 'true');
    keepPending(answer, { key: this.key, values: v });
    try {
      const data =
        action === 'insert'
          ? await records.insert({ ...v, ...this.trap?.values() }, this.key)
          : await records.edit(record, v, this.key, name);
      dropPending(answer);
      this.done(data);
    } catch (failure) {
      // Without an answer, the record may have been stored.
      if (failure.code !== 'down') dropPending(answer);
      await this.refuse(failure);
    } finally {
      this.send.removeAttribute('aria-disabled');
    }
    return undefined;
  }

  done(data) {
    const { answer, say, action, members, name } = this;
    this.key = newKey();
    const links = linksOf(answer, { ...name, ...data });
    if (action === 'edit') {
      this.before = valuesOf(members);
      this.record = data;
      showStatus(this.top, say('edited'), ...links);
      return;
    }
    latest = undefined;
    const another = button(say('another'), () => {
      showForm(this, { values: this.empty, empty: this.empty });
      members[0]?.field.target?.focus();
    });
    showEnd(this.body, say('inserted'), [...links, another]);
  }

  async refuse(failure) {
    const { say, members, action } = this;
    if (failure.code === 'precondition_failed' && action === 'edit') {
      return this.resolveConflict(failure);
    }
    if (failure.code === 'conflict' && failure.field === 'vk') return this.offerAnother();
    const text = failureText(failure, say);
    const problems = Array.isArray(failure.problems) ? failure.problems : [];
    const texts = new Map();
    for (const { field: path, message: words } of [...problems, failure]) {
      const field = fieldOf(members, path);
      if (field !== undefined && !texts.has(field)) texts.set(field, words || text);
    }
    if (texts.size === 0) return showProblem(this.top, message(text, failure, say));
    for (const [field, words] of texts) {
      field.isWrong = true;
      field.mark(words);
    }
    return showErrors(this.top, [...texts.keys()], say, texts);
  }

  /** The first attempt was stored although its answer was lost; the values have changed since. */
  offerAnother() {
    const { say } = this;
    const again = button(say('resend'), () => {
      this.key = newKey();
      return this.submit();
    });
    showProblem(this.top, message(say('stored')), again);
  }

  /** Shows field by field what somebody else has changed; the person chooses, then saves. */
  async resolveConflict(failure) {
    const { records, members, say, answer, meta, name, before } = this;
    let record;
    try {
      record = await records.read(name);
    } catch (later) {
      const shown = later.code === 'down' ? failure : later;
      return showProblem(this.top, message(failureText(shown, say), shown, say));
    }
    const mine = valuesOf(members);
    setValues(members, record);
    const theirs = valuesOf(members);
    const changed = changedFields(members, { before, mine, theirs });
    const own = changes(before, mine);
    const choose = (chosen) => {
      setValues(members, { ...theirs, ...own, ...chosen });
      this.record = record;
      this.before = theirs;
      this.key = newKey();
      showStatus(this.top, say('chosen'));
      this.send.focus();
    };
    setValues(members, mine);
    if (changed.length === 0) {
      choose({});
      return this.submit();
    }
    const look = { say, lang: answer.lang ?? undefined, root: meta };
    return showConflict(this.top, changed, look, choose);
  }
}

/**
 * A field that people and screen readers do not meet: programs fill it in, and the server then
 * stores nothing. Undefined for a table without one.
 */
function trapFor({ described, action }) {
  const { honeypot } = described;
  if (action !== 'insert' || typeof honeypot !== 'string') return undefined;
  const control = tag('input', { type: 'text', name: honeypot, tabIndex: -1, autocomplete: 'off' });
  return {
    element: tag(
      'div',
      { className: 'waymark-extra', 'aria-hidden': 'true' },
      tag('label', {}, honeypot, control),
    ),
    values: () => (control.value === '' ? {} : { [honeypot]: control.value }),
  };
}

function setValues(members, values) {
  const given = new Map(Object.entries(values));
  for (const { name, field } of members) field.set(given.get(name) ?? undefined);
}

/** The members that an edit sends: changed values, and null for removed ones. */
function changes(before, after) {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  const names = [...new Set([...old.keys(), ...now.keys()])];
  return Object.fromEntries(
    names
      .filter((name) => !sameValue(old.get(name), now.get(name)))
      .map((name) => [name, now.get(name) ?? null]),
  );
}

function* allFields(members) {
  for (const { field } of members) yield* fieldsIn(field);
}

/** The field at a path such as `address.city`; undefined if the form does not have it. */
function fieldOf(members, path) {
  const [first, ...rest] = typeof path === 'string' ? path.split('.') : [];
  const member = members.find(({ name }) => name === first);
  return member && fieldAt(member.field, rest);
}

/** Whether a field is valid; shows its error otherwise. */
function check(field) {
  const problem = field.problem();
  field.isWrong = problem !== '';
  field.mark(problem);
  return !field.isWrong;
}
