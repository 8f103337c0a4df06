/*
 * The engine `form` (docs/design/rendering.md#generic-pages): pages that insert, edit and delete
 * records of a table. It makes the form from the table's JSON Schema, and sends the record to
 * Waymark's own tables, or to the data host of `enginedata.submit`. Before an edit or delete it
 * reads the record from there.
 */

import { showDelete } from './form/delete-page.js';
import { htmlOf, tag } from './form/dom.js';
import { draftOf, showForm } from './form/edit-page.js';
import { createField } from './form/fields.js';
import { button, failureText, message } from './form/messages.js';
import { pendingOf } from './form/pending.js';
import { namesOf, readNamed, recordsOf, schemaOf } from './form/records.js';
import { labelOf, propertiesOf, resolved, valueOfText } from './form/schema.js';
import { wordsOf } from './form/words.js';

export async function render(answer, page) {
  const { enginedata } = answer;
  const form = beginningOf(answer);
  const records = recordsOf(answer, page);
  if (records.describe === undefined) requireProperties(answer.meta);
  const draft = draftOf(answer);
  page.setTitle(enginedata.title);
  page.setCss(enginedata.css);
  addStyle(page);
  page.element.replaceChildren(form.element);
  await describeAndShow({ ...form, records, page, draft });
}

/**
 * The HTML of the page as it begins, for the preview of an editor: it reads no record and sends
 * nothing. `described` is an answer of record.schema, or has the `schema` of another data host.
 */
export function preview(answer, described) {
  requireProperties(described.schema);
  const form = { ...beginningOf(answer), records: {}, described, meta: schemaOf(described) };
  const members = membersOf(form, form.meta, described);
  const whole = { ...form, members };
  const values = beginningValues(whole);
  if (form.action === 'delete') showDelete(whole, values);
  else showForm(whole, { values, empty: values });
  return htmlOf(form.element);
}

function requireProperties(schema) {
  if (typeof schema?.properties !== 'object')
    throw new Error('The rule needs a table whose JSON Schema has properties.');
}

/** The action of a page, and its element with the heading; `body` is for the form. */
function beginningOf(answer) {
  const { enginedata, kind } = answer;
  const say = wordsOf(enginedata.words);
  const action = /^(insert|edit|delete)-record$/.exec(kind)?.[1];
  if (action === undefined)
    throw new Error(
      'The engine form needs a rule of kind insert-record, edit-record or delete-record.',
    );
  const heading = tag('h1', {}, headingOf(answer, action, say));
  const body = tag('div', { className: 'waymark-form-body' });
  const intro = tag('p', { className: 'waymark-intro', hidden: !enginedata.intro });
  intro.textContent = enginedata.intro ?? '';
  const element = tag('section', { className: 'waymark-form' }, heading, intro, body);
  return { answer, action, say, element, body };
}

/** Reads what the form needs to know about the table, then shows the page. */
async function describeAndShow(form) {
  const { answer, action, say, records, body } = form;
  let described = {};
  let { meta } = answer;
  try {
    if (records.describe !== undefined) {
      described = await records.describe();
      meta = schemaOf(described);
    }
  } catch (failure) {
    const again = button(say('again'), () => describeAndShow(form));
    body.replaceChildren(message(failureText(failure, say), failure, say), again);
    return;
  }
  await styled;
  const need = action === 'insert' ? 'insert' : 'edit';
  if (described.may?.[need] === 'none') {
    body.replaceChildren(message(say('forbidden')));
    return;
  }
  const whole = { ...form, described, meta, members: membersOf(form, meta, described) };
  if (action === 'insert') showInsert(whole);
  else await showRecord(whole);
}

function headingOf({ meta, table, enginedata }, action, say) {
  return (
    enginedata.heading ?? enginedata.title ?? `${say(action)}: ${labelOf(table ?? '', meta ?? {})}`
  );
}

/**
 * The fields in the order of enginedata.fields, without the id and those that the host writes. A
 * `writeOnly` field of a stored record is empty, and may stay so.
 */
function membersOf({ answer, action, say }, meta, { owner }) {
  const { enginedata } = answer;
  const all = propertiesOf(resolved(meta, meta), meta);
  const wanted = Array.isArray(enginedata.fields) ? enginedata.fields : all.map(({ name }) => name);
  const left = [enginedata.id ?? 'id', owner];
  return wanted
    .map((name) => all.find((one) => one.name === name))
    .filter((one) => one !== undefined && !left.includes(one.name) && one.schema.readOnly !== true)
    .map((one) => {
      const isStored = action !== 'insert' && one.schema.writeOnly === true;
      const member = { ...one, isRequired: one.isRequired && !isStored };
      return { ...member, field: createField({ ...member, root: meta, say }) };
    });
}

function showInsert(form) {
  const { answer, draft } = form;
  const empty = beginningValues(form);
  const pending = pendingOf(answer);
  const values = { ...empty, ...valuesOfQuery(form), ...pending?.values, ...draft?.values };
  showForm(form, { values, empty, pending, key: draft?.key });
}

/** The values that a new record begins with. */
function beginningValues({ answer, members }) {
  const defaults = Object.fromEntries(members.map(({ name, schema }) => [name, schema.default]));
  return { ...defaults, ...answer.enginedata.values };
}

/** The values of fields in the query of the page's address. */
function valuesOfQuery({ answer, members, meta }) {
  const given = new Map(Object.entries(answer.query));
  return Object.fromEntries(
    members
      .filter(({ name }) => given.has(name))
      .map(({ name, schema }) => [name, valueOfText(given.get(name), schema, meta)]),
  );
}

/** Reads the record that the address names, then shows the form to edit or delete it. */
async function showRecord(form) {
  const { answer, action, say, records, body, described, draft } = form;
  const names = namesOf(answer, described.key);
  if (names === undefined) {
    body.replaceChildren(message(say('unnamed')));
    return;
  }
  body.replaceChildren(tag('p', { role: 'status' }, say('reading')));
  let found;
  try {
    found = await readNamed(records, names);
  } catch (failure) {
    const again = button(say('again'), () => showRecord(form));
    body.replaceChildren(message(failureText(failure, say), failure, say), again);
    return;
  }
  const { name, record } = found;
  const whole = { ...form, name };
  if (action === 'delete') showDelete(whole, record);
  else
    showForm(whole, {
      values: { ...record, ...draft?.values },
      record,
      pending: pendingOf(answer),
    });
}

/** Settled when the style of forms is there, or cannot be had. */
let styled = Promise.resolve();

function addStyle({ base, nonce }) {
  const href = `${base}/svc1/engines/form.css`;
  if (document.querySelector(`link[href="${CSS.escape(href)}"]`) !== null) return;
  const link = tag('link', { rel: 'stylesheet', href, nonce });
  // A form without its style is wider than the window for a moment.
  styled = new Promise((resolve) => {
    link.addEventListener('load', resolve);
    link.addEventListener('error', resolve);
  });
  // The first style sheet, so that the site's own rules override it.
  document.head.prepend(link);
}
