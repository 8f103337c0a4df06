/*
 * Where the records of a form are: in a table of Waymark, by the operations `record.*`, or at the
 * data host that enginedata.submit names. Each function rejects with a HostFailure.
 */

import { connectHost, HostFailure } from './host.js';
import { textOf } from './schema.js';

/** The records of the answer's table. */
export function recordsOf({ enginedata, table }, { base }) {
  const { submit } = enginedata;
  if (submit === undefined) {
    if (typeof table !== 'string') throw new Error('The rule needs a table.');
    return ownTable(table, base);
  }
  if (typeof submit?.url !== 'string' || typeof submit.a !== 'string') {
    throw new Error('enginedata.submit needs url and a.');
  }
  return otherHost(enginedata);
}

function ownTable(table, base) {
  const ask = (operation, v, more = {}) =>
    connectHost({ url: `${base}/svc1/record/${operation}`, isOwn: true }).ask({
      v: { ...v, table },
      ...more,
    });
  // What is not valid is refused, so that the person can correct it.
  const prefer = 'handling=strict';
  const digests = new Map();
  return {
    describe: () => ask('schema', {}),
    read: (name) => ask('get', name),
    insert: (v, vk) => ask('insert', v, { vk, prefer }),
    edit: ({ id, seq }, v, vk) => ask('edit', { ...v, id, if_seq: seq }, { vk, prefer }),
    /** Deletes a row unless it has changed; sent again, it deletes the row once. */
    async remove({ id, seq }, vk) {
      if (!digests.has(id)) {
        const now = await ask('get', { id });
        if (now.seq !== seq) throw new HostFailure({ code: 'precondition_failed' });
        digests.set(id, (await ask('invalidate', { id })).digest);
      }
      try {
        return await ask('invalidate', { id, confirm: digests.get(id) }, { vk });
      } catch (failure) {
        if (failure.code !== 'down') digests.delete(id);
        throw failure;
      }
    },
  };
}

function otherHost({ submit, read, id: idName = 'id' }) {
  const host = connectHost(submit);
  const reader = typeof read?.url === 'string' ? connectHost({ ...submit, ...read }) : host;
  const readName = read?.a ?? `${submit.a.slice(0, submit.a.lastIndexOf('.') + 1)}read`;
  const send = (v, vk) => host.ask({ a: submit.a, v: { ...submit.v, ...v }, vk });
  /** With `submit.if_seq`, the host refuses the change if the record has changed meanwhile. */
  const named = (record, name) =>
    submit.if_seq === true && Number.isInteger(record?.seq)
      ? { ...name, if_seq: record.seq }
      : name;
  return {
    describe: undefined,
    read: (name) => reader.ask({ a: readName, v: { ...submit.v, ...name } }),
    insert: send,
    edit: (record, v, vk, name) => send({ ...v, ...named(record, name) }, vk),
    remove: (record, vk, name) => send(named(record, name), vk),
    idName,
  };
}

/**
 * The names of the record that an address has, the likeliest first: the part of the path under `*`,
 * or a parameter of the query, as the id or as the key of the table; undefined without one.
 */
export function namesOf({ capture, query, enginedata }, key) {
  const { id: wanted } = enginedata;
  if (wanted !== undefined || key === undefined) {
    const name = wanted ?? 'id';
    const value = capture || query[name];
    return isName(value) ? [{ [name]: value }] : undefined;
  }
  if (isName(capture)) {
    const names = [{ [key]: capture }, { id: capture }];
    return uuid.test(capture) ? names.reverse() : names.slice(0, 1);
  }
  for (const name of ['id', key]) if (isName(query[name])) return [{ [name]: query[name] }];
  return undefined;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function isName(value) {
  return typeof value === 'string' && value !== '';
}

/** Reads the record that the first fitting name has. */
export async function readNamed(records, names) {
  for (const [at, name] of names.entries()) {
    try {
      return { name, record: await records.read(name) };
    } catch (failure) {
      const mayBeAnother = failure.code === 'not_found' || failure.code === 'invalid';
      if (!mayBeAnother || at === names.length - 1) throw failure;
    }
  }
  throw new HostFailure({ code: 'not_found' });
}

/**
 * The schema of a described table for a form: fields with `x-table` offer the rows that they can
 * refer to, by their titles.
 */
export function schemaOf({ schema, references = {} }) {
  const properties = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const { choices = [], is_whole: isWhole } = references[name] ?? {};
    if (choices.length === 0) return [name, property];
    const named = choices.map(({ value, title }) => ({ const: value, title: textOf(title) }));
    return [name, { ...property, ...(isWhole ? { oneOf: named } : { 'x-choices': named }) }];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}
