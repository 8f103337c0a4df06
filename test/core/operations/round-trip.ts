import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseJson } from '../../../src/core/values/json/parse.ts';
import { canonicalJson, type Json, type JsonObject } from '../../../src/core/values/json/json.ts';
import { runHere } from '../../cli/here.ts';
import type { TestSite } from '../../harness.ts';
import type { TestReceiver } from '../../modules/webhooks/receiver.ts';

/** Whole texts of numbers, at the edges of what a double holds. */
const numbers = fc.oneof(
  fc.constantFrom(
    ...['0', '-0', '1', '1.0', '1e0', '0.1', '0.30000000000000004', '5e-324', '1e400', '-1e-400'],
    ...['9007199254740991', '9007199254740992', '9007199254740993', '-9007199254740993'],
    ...['9223372036854775807', '18446744073709551616', '1000000000000000000000', '1e21'],
    ...['0.1000000000000000055511151231257827', '12345678901234567890.10', '9'.repeat(401)],
  ),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((one) => JSON.stringify(one)),
);

const texts = fc.oneof(
  fc.constantFrom(
    '',
    'é',
    'é',
    '\0',
    '1e400',
    'null',
    '😀',
    '\u2028',
    '\ufffd',
    '\ud800',
    'a&b=c+d%',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

const dates = fc.constantFrom(
  ...['2026-11-29T10:00:00Z', '2026-11-29T11:00:00+01:00', '2026-11-29t10:00:00.000z'],
  ...['2026-11-29T10:00:00.123456789Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'],
  ...['2024-02-29T23:59:59-12:00', '2026-02-30T00:00:00Z', '2026-11-29'],
);

const quoted = fc.oneof(texts, dates).map((text) => JSON.stringify(text));
const leaf = fc.oneof(numbers, quoted, fc.constantFrom('true', 'false'));

/** JSON texts, nested at most twice. */
const json: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: leaf },
  fc.array(leaf, { maxLength: 3 }).map((items) => `[${items.join()}]`),
  fc.dictionary(fc.constantFrom('a', 'B', '__proto__', 'é'), leaf, { maxKeys: 3 }).map(objectText),
);

const fields = fc
  .record({ any: json, n: numbers, i: numbers, t: quoted, at: quoted }, { requiredKeys: [] })
  .filter((made) => Object.keys(made).length > 0);

/** What a caller does. */
export const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constantFrom('row', 'import', 'form'), fields, at: fc.nat() }),
    fc.record({
      do: fc.constantFrom('rule', 'event', 'draft', 'hook', 'table'),
      fields,
      at: fc.nat(),
    }),
    fc.record({
      do: fc.constantFrom('edit', 'undo', 'batch', 'batch undone'),
      fields,
      at: fc.nat(),
    }),
  ),
  { minLength: 1, maxLength: 12 },
);

export type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

function objectText(members: Readonly<Record<string, string>>): string {
  return `{${Object.entries(members)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join()}}`;
}

const properties = {
  ...{ any: {}, n: { type: 'number' }, i: { type: 'integer' }, t: { type: 'string' } },
  at: { type: 'string', format: 'date-time' },
};

/** A record that was written, and what it has to show. */
interface Known {
  readonly family: 'record' | 'userinterface' | 'webhook' | 'table';
  readonly id: string;
  /** Its fields before the last change, then now. */
  states: readonly JsonObject[];
  /** Whether the last change was one of a batch, whose undo takes other records back as well. */
  isOfBatch?: boolean;
}

/** What steps have written, over several runs. */
export interface Written {
  readonly known: Known[];
  /** The data of events by their ids. */
  readonly events: Map<string, Json>;
}

/** Runs steps on a site, and checks after each one that what was sent is what is read. */
export async function runSteps(site: TestSite, all: Steps, written: Written): Promise<void> {
  const { known, events } = written;
  const own: Known[] = [];
  for (const step of all) await runStep(site, step, { known: own, events });
  for (const record of own) await check(site, record);
  known.push(...own);
}

/** Makes the table that the steps write to, and a hook that gets their events. */
export async function prepare(site: TestSite, receiver: TestReceiver): Promise<Written> {
  const schema = { type: 'object', properties };
  const made = await site.call('table.insert', { name: 'things', schema, index: ['n', 'at'] });
  assert.equal(made.error, undefined);
  await site.call('webhook.insert', { url: receiver.url, event: ['round.trip'] });
  return { known: [], events: new Map() };
}

/** Checks what was written as the receiver of the hook got it, and as an export writes it. */
export async function checkCopies(
  site: TestSite,
  receiver: TestReceiver,
  { known, events }: Written,
): Promise<void> {
  const delivered = await receiver.until(events.size);
  for (const { bytes } of delivered) {
    const { id, data } = parseJson(bytes.toString()) as JsonObject & { readonly id: string };
    assertSame(data, events.get(id) ?? null);
  }
  const { out, code, err } = await runHere(['export', '--config', site.iniFile]);
  assert.equal(code, 0, err);
  const lines = out.split('\n').filter((line) => line !== '');
  const exported = new Map(
    lines.map((line) => {
      // A page rule is the line itself.
      const { vk, v, ...rule } = parseJson(line) as JsonObject & { readonly vk: string };
      return [vk.split(':').at(-1), (v ?? rule) as JsonObject] as const;
    }),
  );
  for (const { id, states } of known) {
    const record = exported.get(id);
    assert.equal(record === undefined, states.length === 0, id);
    if (record !== undefined) assertShows(record, states.at(-1) ?? {});
  }
}

let made = 0;

async function runStep(
  site: TestSite,
  step: Steps[number],
  { known, events }: Written,
): Promise<void> {
  made += 1;
  const vk = `round-trip ${made}`;
  const text = objectText(step.fields);
  const record = known[step.at % Math.max(1, known.length)];
  switch (step.do) {
    case 'row':
    case 'edit':
    case 'rule':
    case 'hook':
    case 'table':
    case 'event': {
      await write(site, { step: step.do, text, vk, record, known, events });
      return;
    }
    case 'import':
      return importRow(site, { text, vk, known });
    case 'form':
      return sendForm(site, { fields: step.fields, vk, known });
    case 'draft':
      return draftRule(site, { text, vk });
    case 'undo':
      return record && undo(site, record);
    case 'batch':
    case 'batch undone':
      return batch(site, { text, vk, known, events, record, isUndone: step.do !== 'batch' });
  }
}

interface Sent {
  readonly text: string;
  readonly vk: string;
  readonly known: Known[];
}

interface SentToAll extends Sent, Written {
  readonly known: Known[];
  readonly record?: Known | undefined;
}

/** POSTs a body as text, because the body may have numbers that JavaScript would change. */
async function post(
  { url, adminKey }: TestSite,
  operation: string,
  body: string,
  type = 'application/json',
): Promise<JsonObject> {
  const reply = await fetch(`${url}/svc1/${operation}`, {
    ...{ method: 'POST', body, headers: { apikey: adminKey, 'content-type': type } },
  });
  return parseJson(await reply.text()) as JsonObject;
}

/** Whether the server has refused the request by the name of a field; it may not do so otherwise. */
function isRefused({ error }: JsonObject): boolean {
  if (error === undefined) return false;
  const { code, field } = error as JsonObject;
  assert.ok(typeof field === 'string' && field !== '', canonicalJson(error));
  assert.ok(code === 'invalid' || code === 'too_large', canonicalJson(error));
  return true;
}

async function write(
  site: TestSite,
  { step, text, vk, record, known, events }: SentToAll & { readonly step: string },
): Promise<void> {
  if (step === 'event') {
    const answer = await post(
      site,
      'event/insert',
      `{"v":{"type":"round.trip","data":${text}},"vk":"${vk}"}`,
    );
    if (isRefused(answer)) return;
    await keepEvent(site, events, { id: (answer.data as JsonObject).id, text });
    return;
  }
  if (step === 'rule') {
    const v = `{"path":"/r${made}","kind":"content","engine":"html","enginedata":${text}}`;
    const answer = await post(site, 'userinterface/insert', `{"v":${v},"vk":"${vk}"}`);
    if (isRefused(answer)) return;
    const sent = { enginedata: parseJson(text) as JsonObject };
    keep(known, 'userinterface', { answer, sent });
    return;
  }
  if (step === 'hook') {
    const v = `{"url":"https://a.example/${made}","event":["a.b"],"filter":${text}}`;
    const answer = await post(site, 'webhook/insert', `{"v":${v},"vk":"${vk}"}`);
    if (isRefused(answer)) return;
    const sent = { filter: parseJson(text) as JsonObject };
    keep(known, 'webhook', { answer, sent });
    return;
  }
  if (step === 'table') {
    const schema = `{"type":"object","properties":{"a":{"default":${text}}}}`;
    const v = `{"name":"t${made}","schema":${schema}}`;
    const answer = await post(site, 'table/insert', `{"v":${v},"vk":"${vk}"}`);
    if (isRefused(answer)) return;
    const sent = { schema: parseJson(schema) as JsonObject };
    keep(known, 'table', { answer, sent });
    return;
  }
  if (step === 'row') {
    const v = `{"table":"things",${text.slice(1)}`;
    const answer = await post(site, 'record/insert', `{"v":${v},"vk":"${vk}"}`);
    if (!isRefused(answer)) keep(known, 'record', { answer, sent: parseJson(text) as JsonObject });
    return;
  }
  if (record?.family !== 'record' || record.states.length === 0) return;
  const v = `{"table":"things","id":"${record.id}",${text.slice(1)}`;
  const answer = await post(site, 'record/edit', `{"v":${v},"vk":"${vk}"}`);
  if (isRefused(answer)) return;
  record.states = [
    ...record.states,
    { ...record.states.at(-1), ...(parseJson(text) as JsonObject) },
  ];
  record.isOfBatch = false;
  await check(site, record);
}

function keep(
  known: Known[],
  family: Known['family'],
  { answer, sent }: { readonly answer: JsonObject; readonly sent: JsonObject },
): void {
  const { id } = answer.data as JsonObject;
  assert.ok(typeof id === 'string');
  known.push({ family, id, states: [sent] });
}

async function keepEvent(
  site: TestSite,
  events: Written['events'],
  { id, text }: { readonly id: Json | undefined; readonly text: string },
): Promise<void> {
  assert.ok(typeof id === 'string');
  const read = await post(site, 'event/read', JSON.stringify({ v: { id } }));
  const sent = parseJson(text) as Json;
  assertSame((read.data as JsonObject).data, sent);
  events.set(id, sent);
}

/** Writes to all families in one transaction, which may be taken back as a whole. */
async function batch(
  site: TestSite,
  { text, vk, known, events, record, isUndone }: SentToAll & { readonly isUndone: boolean },
): Promise<void> {
  const row = record?.family === 'record' && record.states.length > 0 ? record : undefined;
  const operations = [
    `{"a":"svc1.record.insert","v":{"table":"things",${text.slice(1)}}`,
    `{"a":"svc1.userinterface.insert","v":{"path":"/b${made}","kind":"content","enginedata":${text}}}`,
    `{"a":"svc1.event.insert","v":{"type":"round.trip","data":${text}}}`,
    ...(row === undefined
      ? []
      : [`{"a":"svc1.record.edit","v":{"table":"things","id":"${row.id}",${text.slice(1)}}`]),
  ];
  const v = `{"operations":[${operations.join()}]}`;
  const answer = await post(site, 'batch', `{"v":${v},"vk":"${vk}"}`);
  if (isRefused(answer)) return;
  const { txn = null, results } = answer.data as JsonObject;
  const sent = parseJson(text) as JsonObject;
  const [first, second, third] = results as readonly JsonObject[];
  keep(known, 'record', { answer: { data: first ?? null }, sent });
  keep(known, 'userinterface', { answer: { data: second ?? null }, sent: { enginedata: sent } });
  await keepEvent(site, events, { id: third?.id, text });
  const before = row && { states: row.states, isOfBatch: row.isOfBatch ?? false };
  if (row !== undefined) {
    row.states = [...row.states, { ...row.states.at(-1), ...sent }];
    row.isOfBatch = true;
  }
  for (const one of [...known.slice(-2), ...(row === undefined ? [] : [row])]) {
    await check(site, one);
  }
  if (!isUndone) return;
  const plan = await post(site, 'change/invalidate', JSON.stringify({ v: { txn } }));
  const confirm = (plan.data as JsonObject).digest;
  const done = await post(site, 'change/invalidate', JSON.stringify({ v: { txn, confirm } }));
  assert.equal(done.error, undefined, canonicalJson(done));
  for (const one of known.slice(-2)) one.states = [];
  if (row !== undefined) Object.assign(row, before);
}

async function importRow(site: TestSite, { text, vk, known }: Sent): Promise<void> {
  const line = `{"a":"svc1.record.insert","v":{"table":"things",${text.slice(1)},"vk":"${vk}"}`;
  const answer = await post(site, 'userinterface/import', line, 'application/x-ndjson');
  if (isRefused(answer)) return;
  const { imported, refused } = answer.data as JsonObject;
  if (imported !== 1) {
    assert.ok(Array.isArray(refused) && refused.length === 1, canonicalJson(answer));
    return;
  }
  const list = await post(site, 'record/list', '{"v":{"table":"things","limit":1000}}');
  const rows = (list.data as JsonObject).rows as readonly JsonObject[];
  const fresh = rows.filter(({ id }) => !known.some((one) => one.id === id)).at(-1);
  assert.ok(fresh !== undefined);
  keep(known, 'record', { answer: { data: fresh }, sent: parseJson(text) as JsonObject });
}

/** A form has texts alone: those of numbers are numbers in fields that have such. */
async function sendForm(
  site: TestSite,
  { fields: sent, vk, known }: Omit<Sent, 'text'> & { readonly fields: Record<string, string> },
): Promise<void> {
  const form = new URLSearchParams({ '_v.table': 'things', _vk: vk });
  const expected: Record<string, Json> = {};
  for (const [name, text] of Object.entries(sent)) {
    const value = parseable(text);
    if (name === 'any' || value === undefined || value === '') continue;
    if (typeof value === 'string' && !value.isWellFormed()) continue;
    form.set(`_v.${name}`, typeof value === 'string' ? value : text);
    expected[name] = value;
  }
  const type = 'application/x-www-form-urlencoded';
  const answer = await post(site, 'record/insert', form.toString(), type);
  if (!isRefused(answer)) keep(known, 'record', { answer, sent: expected });
}

function parseable(text: string): Json | undefined {
  try {
    return parseJson(`[${text}]`) instanceof Array
      ? (parseJson(`[${text}]`) as Json[])[0]
      : undefined;
  } catch {
    return undefined;
  }
}

async function draftRule(site: TestSite, { text, vk }: Omit<Sent, 'known'>): Promise<void> {
  const name = JSON.stringify({ v: { name: vk } });
  const draft = (await post(site, 'draft/insert', name)).data as JsonObject;
  const v = `{"path":"/d${made}","kind":"content","engine":"html","enginedata":${text}}`;
  const envelope = `{"v":${v},"vk":"${vk}","draft":${JSON.stringify(draft.id)}}`;
  const answer = await post(site, 'userinterface/insert', envelope);
  if (isRefused(answer)) return;
  const { id } = answer.data as JsonObject;
  const read = await post(
    site,
    'userinterface/read',
    JSON.stringify({ v: { id }, draft: draft.id }),
  );
  assertSame((read.data as JsonObject).enginedata, parseJson(text) as Json);
}

async function undo(site: TestSite, record: Known): Promise<void> {
  if (record.family !== 'record' || record.states.length < 2 || record.isOfBatch === true) return;
  const history = await post(
    site,
    'record/read',
    JSON.stringify({ v: { table: 'things', id: record.id }, qk: 'history' }),
  );
  const rows = (history.data as JsonObject).rows as readonly JsonObject[];
  const newest = rows.find(({ invalidated }) => invalidated === undefined);
  const v = { table: 'things', txn: newest?.txn ?? null };
  const plan = await post(site, 'record/invalidate', JSON.stringify({ v }));
  const confirmed = { v: { ...v, confirm: (plan.data as JsonObject).digest } };
  const done = await post(site, 'record/invalidate', JSON.stringify(confirmed));
  assert.equal(done.error, undefined);
  record.states = record.states.slice(0, -1);
  await check(site, record);
}

/** What is read of a record is what was sent last: as a field, or as a value that waits. */
async function check(site: TestSite, { family, id, states }: Known): Promise<void> {
  const v = family === 'record' ? { table: 'things', id } : { id };
  const { data, error } = await post(site, `${family}/read`, JSON.stringify({ v }));
  if (states.length === 0) assert.equal((error as JsonObject | undefined)?.code, 'not_found');
  else assertShows(data as JsonObject, states.at(-1) ?? {});
}

/** The fields of a record are those that were sent, or wait as they were sent. */
function assertShows(record: JsonObject, state: JsonObject): void {
  const waiting = (record._unknowns_ ?? {}) as JsonObject;
  for (const [name, sent] of Object.entries(state)) {
    const shown = Object.hasOwn(waiting, name) ? waiting[name] : record[name];
    assertSame(shown, sent);
  }
}

function assertSame(shown: Json | undefined, sent: Json): void {
  assert.equal(shown === undefined ? undefined : textOf(shown), textOf(sent));
}

/** The canonical text of a value, which may have half a surrogate pair. */
function textOf(value: Json): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted);
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  const members = Object.entries(value).map(([name, one]) => [name, sorted(one)] as const);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
