/*
 * The engine `form` (docs/design/rendering.md#generic-pages): pages that insert, edit and delete
 * records of a table. It makes the form from the table's JSON Schema, `meta`, and sends the record
 * to the data host of `enginedata.submit`. Before an edit or delete it reads the record from there.
 */

import { link, tag } from './form/dom.js';
import { createField, fieldAt, fieldsIn, valuesOf } from './form/fields.js';
import { connectHost, newKey } from './form/host.js';
import {
  button,
  failureText,
  message,
  showEnd,
  showErrors,
  showProblem,
  showStatus,
} from './form/messages.js';
import { describeRecord } from './form/record.js';
import { labelOf, propertiesOf, resolved, sameValue, valueOfText } from './form/schema.js';
import { wordsOf } from './form/words.js';

/** The unsent values of the form, kept while the page renders again after a change of its rule. */
let draft;

export async function render(answer, page) {
  const { enginedata, kind, meta, id } = answer;
  const say = wordsOf(enginedata.words);
  const action = /^(insert|edit|delete)-record$/.exec(kind)?.[1];
  if (action === undefined)
    throw new Error(
      'The engine form needs a rule of kind insert-record, edit-record or delete-record.',
    );
  if (typeof meta?.properties !== 'object')
    throw new Error('The rule needs a table whose JSON Schema has properties.');
  if (typeof enginedata.submit?.url !== 'string' || typeof enginedata.submit.a !== 'string') {
    throw new Error('enginedata.submit needs url and a.');
  }
  const host = connectHost(enginedata.submit);
  const form = { answer, action, say, host, members: membersOf(answer, say), page };
  const typed = draft?.id === id ? draft.values() : undefined;
  draft = undefined;
  page.setTitle(enginedata.title);
  page.setCss(enginedata.css);
  addStyle(page);
  const heading = enginedata.heading ?? enginedata.title ?? headingOf(answer, action, say);
  const body = tag('div', { className: 'waymark-form-body' });
  const intro = tag('p', { className: 'waymark-intro', hidden: !enginedata.intro });
  intro.textContent = enginedata.intro ?? '';
  page.element.replaceChildren(
    tag('section', { className: 'waymark-form' }, tag('h1', {}, heading), intro, body),
  );
  if (action === 'insert') {
    const queryValues = valuesOfQuery(answer, form.members);
    showForm(
      { ...form, body },
      { ...defaultsOf(form.members), ...enginedata.values, ...queryValues, ...typed },
    );
  } else {
    await showRecord({ ...form, body }, typed);
  }
}

function headingOf({ meta, table }, action, say) {
  return `${say(action)}: ${labelOf(table, meta)}`;
}

/** The fields in the order of enginedata.fields, without the id and those that the host writes. */
function membersOf({ meta, enginedata }, say) {
  const all = propertiesOf(resolved(meta, meta), meta);
  const wanted = Array.isArray(enginedata.fields) ? enginedata.fields : all.map(({ name }) => name);
  const own = enginedata.id ?? 'id';
  return wanted
    .map((name) => all.find((one) => one.name === name))
    .filter((one) => one !== undefined && one.name !== own && one.schema.readOnly !== true)
    .map((one) => ({ ...one, field: createField({ ...one, root: meta, say }) }));
}

function defaultsOf(members) {
  return Object.fromEntries(members.map(({ name, schema }) => [name, schema.default]));
}

/** The values of fields in the query of the page's address. */
function valuesOfQuery({ query, meta }, members) {
  const given = new Map(Object.entries(query));
  return Object.fromEntries(
    members
      .filter(({ name }) => given.has(name))
      .map(({ name, schema }) => [name, valueOfText(given.get(name), schema, meta)]),
  );
}

/** Reads the record that the address names, then shows the form to edit or delete it. */
async function showRecord(form, typed) {
  const { answer, action, say, host, body } = form;
  const { submit, read, id: idName = 'id' } = answer.enginedata;
  const id = answer.capture || answer.query[idName];
  if (typeof id !== 'string' || id === '') {
    body.replaceChildren(message(say('unnamed')));
    return;
  }
  body.replaceChildren(tag('p', { role: 'status' }, say('reading')));
  const reader = typeof read?.url === 'string' ? connectHost({ ...submit, ...read }) : host;
  const a = read?.a ?? `${submit.a.slice(0, submit.a.lastIndexOf('.') + 1)}read`;
  let record;
  try {
    record = await reader.ask({ a, v: { ...submit.v, [idName]: id } });
  } catch (failure) {
    const again = button(say('again'), () => showRecord(form, typed));
    body.replaceChildren(message(failureText(failure, say), failure, say), again);
    return;
  }
  const whole = { ...form, id, idName };
  if (action === 'edit') showForm(whole, { ...record, ...typed }, record);
  else showDelete(whole, record);
}

/** Shows the form with its values; `record` is the stored record, undefined for an insert. */
function showForm(form, values, record) {
  const { answer, action, say, host, members, body } = form;
  const { submit, cancel } = answer.enginedata;
  const given = new Map(Object.entries(values));
  for (const { name, field } of members) field.set(given.get(name) ?? undefined);
  let before = record === undefined ? {} : valuesOf(members);
  let key = newKey();
  const top = tag('div', { className: 'waymark-top' });
  const send = tag('button', { type: 'submit', className: 'waymark-send' }, say(action));
  const element = tag(
    'form',
    { noValidate: true },
    top,
    ...members.map(({ field }) => field.element),
    tag('p', { className: 'waymark-actions' }, send, link(cancel, say('cancel')) ?? ''),
  );
  // A field with an error is checked at each input until it is valid.
  element.addEventListener('input', () => {
    key = newKey();
    for (const field of allFields(members)) if (field.isWrong) check(field);
  });
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    if (send.getAttribute('aria-disabled') !== 'true') void submitForm();
  });
  draft = { id: answer.id, values: () => changes(before, valuesOf(members)) };
  body.replaceChildren(element);

  async function submitForm() {
    const wrong = [...allFields(members)].filter((field) => !check(field));
    if (wrong.length > 0) return showErrors(top, wrong, say);
    const v = action === 'insert' ? valuesOf(members) : changes(before, valuesOf(members));
    if (action === 'edit' && Object.keys(v).length === 0) return showStatus(top, say('unchanged'));
    showStatus(top, say('sending'));
    send.setAttribute('aria-disabled', 'true');
    try {
      const whole = { ...submit.v, ...v, ...(action === 'edit' && idOf(form)) };
      const data = await host.ask({ a: submit.a, v: withSeq(whole, record, submit), vk: key });
      done(data);
    } catch (failure) {
      refuse(failure);
    } finally {
      send.removeAttribute('aria-disabled');
    }
  }

  function done(data) {
    key = newKey();
    if (action === 'edit') {
      before = valuesOf(members);
      record = data;
      showStatus(top, say('edited'), ...linksOf(answer, idOf(form), data));
      return;
    }
    draft = undefined;
    const another = button(say('another'), () => {
      showForm(form, { ...defaultsOf(members), ...answer.enginedata.values });
      members[0]?.field.target?.focus();
    });
    showEnd(body, say('inserted'), [...linksOf(answer, {}, data), another]);
  }

  function refuse(failure) {
    const text = failureText(failure, say);
    const path = typeof failure.field === 'string' ? failure.field.split('.') : [];
    const member = members.find(({ name }) => name === path[0]);
    if (member === undefined) return showProblem(top, message(text, failure, say));
    const field = fieldAt(member.field, path.slice(1));
    field.isWrong = true;
    field.mark(failure.message || text);
    return showErrors(top, [field], say, failure.message || text);
  }
}

/** Shows a record and a button to delete it. */
function showDelete(form, record) {
  const { answer, say, host, members, body } = form;
  const { submit, cancel } = answer.enginedata;
  const top = tag('div', { className: 'waymark-top' });
  const key = newKey();
  const remove = button(say('delete'), async () => {
    if (remove.getAttribute('aria-disabled') === 'true') return;
    remove.setAttribute('aria-disabled', 'true');
    showStatus(top, say('sending'));
    try {
      const v = withSeq({ ...submit.v, ...idOf(form) }, record, submit);
      const data = await host.ask({ a: submit.a, v, vk: key });
      showEnd(body, say('deleted'), linksOf(answer, idOf(form), data));
    } catch (failure) {
      showProblem(top, message(failureText(failure, say), failure, say));
    } finally {
      remove.removeAttribute('aria-disabled');
    }
  });
  remove.className = 'waymark-send waymark-delete';
  body.replaceChildren(
    top,
    tag('p', {}, say('sure')),
    describeRecord(members, record, {
      say,
      lang: answer.lang ?? undefined,
      root: answer.meta,
    }),
    tag('p', { className: 'waymark-actions' }, remove, link(cancel, say('cancel')) ?? ''),
  );
}

function idOf({ id, idName }) {
  return { [idName]: id };
}

/** With `submit.if_seq`, the host refuses the change if the record has changed meanwhile. */
function withSeq(v, record, { if_seq: isRequired }) {
  return isRequired === true && Number.isInteger(record?.seq) ? { ...v, if_seq: record.seq } : v;
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

/** Whether a field is valid; shows its error otherwise. */
function check(field) {
  const problem = field.problem();
  field.isWrong = problem !== '';
  field.mark(problem);
  return !field.isWrong;
}

/** The links of enginedata.done; `{name}` stands for a field of the host's answer. */
function linksOf({ enginedata: { done } }, id, data) {
  const values = new Map(Object.entries({ ...id, ...(typeof data === 'object' ? data : {}) }));
  const links = Array.isArray(done?.links) ? done.links : [];
  return links.flatMap(({ href, label }) => {
    const whole = String(href).replace(/\{([^{}]+)\}/g, (_, name) =>
      encodeURIComponent(String(values.get(name) ?? '')),
    );
    return link(whole, String(label)) ?? [];
  });
}

function addStyle({ base, nonce }) {
  const href = `${base}/svc1/engines/form.css`;
  if (document.querySelector(`link[href="${CSS.escape(href)}"]`) !== null) return;
  // The first style sheet, so that the site's own rules override it.
  document.head.prepend(tag('link', { rel: 'stylesheet', href, nonce }));
}
