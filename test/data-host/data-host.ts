import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { open, type Database } from 'lmdb';
import { WebSocketServer } from 'ws';

/**
 * An example of a data host, for the tests and the demo: tables over LMDB behind the envelope
 * `{a, v, vk}`, by HTTP POST and over a websocket. `a` is `<table>.insert`, `.read`, `.edit`,
 * `.delete` or `.list`. A record that does not fit its table's JSON Schema is refused under the name
 * of the field.
 */
export interface DataHost {
  /** `http://localhost:<port>`; a websocket has the same address. */
  readonly url: string;
  close(): Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;

interface Envelope {
  readonly a?: string;
  readonly v?: Fields;
  readonly vk?: string;
  readonly id?: unknown;
}

class Refusal extends Error {
  readonly code: string;
  readonly field: string | undefined;
  constructor(code: string, message: string, field?: string) {
    super(message);
    this.code = code;
    this.field = field;
  }
}

/** Starts a data host on a port of the loopback, 0 for any, over tables by their JSON Schemas. */
export async function startDataHost({
  folder,
  port,
  tables,
}: {
  readonly folder: string;
  readonly port: number;
  readonly tables: ReadonlyMap<string, object>;
}): Promise<DataHost> {
  const root = open({ path: folder });
  const records: Database<Fields, string[]> = root.openDB({ name: 'records' });
  const answers: Database<{ text: string; data: unknown }, string> = root.openDB({ name: 'vk' });
  const ajv = new Ajv2020({ strict: false, logger: false });
  const validators = new Map([...tables].map(([name, schema]) => [name, ajv.compile(schema)]));
  const run = (asked: Envelope): Promise<object> => answer(asked, { records, answers, validators });

  const server = createServer((request, response) => void serveHttp(request, response, run));
  const sockets = new WebSocketServer({ server, maxPayload: bodyBytesMax });
  sockets.on('connection', (socket) => {
    socket.on('message', (text: Buffer) => {
      void run(parsed(text.toString())).then((reply) => {
        socket.send(JSON.stringify(reply));
      });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await root.close();
    },
  };
}

interface Parts {
  readonly records: Database<Fields, string[]>;
  readonly answers: Database<{ text: string; data: unknown }, string>;
  readonly validators: ReadonlyMap<string, ValidateFunction>;
}

/** Does what an envelope asks for, once for each vk, and says what came of it. */
async function answer(envelope: Envelope, parts: Parts): Promise<object> {
  const { a = '', v = {}, vk, id } = envelope;
  const echo = id === undefined ? { r: a } : { r: a, id };
  try {
    const data = await parts.records.transaction(() => {
      const text = JSON.stringify([a, v]);
      const known = vk === undefined ? undefined : parts.answers.get(vk);
      if (known?.text === text) return known.data;
      if (known !== undefined) throw new Refusal('conflict', 'This vk stands for something else.');
      const done = operate(a, v, parts);
      if (vk !== undefined) void parts.answers.put(vk, { text, data: done });
      return done;
    });
    return { ...echo, data };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, message, field } = error;
    return { ...echo, error: { code, message, ...(field !== undefined && { field }) } };
  }
}

function operate(a: string, v: Fields, { records, validators }: Parts): unknown {
  const [table = '', operation = ''] = a.split('.');
  const validate = validators.get(table);
  if (validate === undefined) throw new Refusal('not_found', `There is no table ${table}.`);
  const { id, if_seq: ifSeq, ...fields } = v;
  const before = typeof id === 'string' ? records.get([table, id]) : undefined;
  const rows = (): Fields[] =>
    [...records.getRange({ start: [table], end: [table, '\uffff'] })].map(({ value }) => value);
  if (operation === 'list') return { rows: rows().toReversed() };
  if (operation !== 'insert' && before === undefined) {
    throw new Refusal('not_found', `There is no record ${JSON.stringify(id)} in ${table}.`);
  }
  if (ifSeq !== undefined && before?.seq !== ifSeq) {
    throw new Refusal('precondition_failed', 'The record has changed since.');
  }
  const seq = Number(before?.seq ?? 0) + 1;
  switch (operation) {
    case 'read':
      return before;
    case 'delete':
      void records.remove([table, String(id)]);
      return before;
    case 'insert': {
      const last = rows().at(-1)?.id ?? '0';
      const own = String(Number(last) + 1).padStart(8, '0');
      return put(validate, records, table, { ...fields, id: own, seq });
    }
    case 'edit': {
      const changed = Object.entries({ ...before, ...fields }).filter(([, one]) => one !== null);
      return put(validate, records, table, { ...Object.fromEntries(changed), id, seq });
    }
    default:
      throw new Refusal('not_found', `There is no operation ${a}.`);
  }
}

function put(
  validate: ValidateFunction,
  records: Parts['records'],
  table: string,
  record: Fields,
): Fields {
  const { id, seq: _seq, ...fields } = record;
  if (!validate(fields)) throw refusalOf(validate.errors?.[0]);
  void records.put([table, String(id)], record);
  return record;
}

function refusalOf(error: ErrorObject | undefined): Refusal {
  const missing: unknown = error?.params.missingProperty;
  const path = (error?.instancePath ?? '').slice(1).split('/');
  const field = [...path, missing].filter((part) => part !== '' && part !== undefined).join('.');
  const message =
    typeof missing === 'string' ? 'This is missing.' : `This ${error?.message ?? ''}.`;
  return new Refusal('invalid', message, field);
}

const bodyBytesMax = 1_048_576;

/** Pages of any origin may ask: what is here is made up. */
const cors = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'content-type',
  'access-control-max-age': '600',
};

async function serveHttp(
  request: IncomingMessage,
  response: ServerResponse,
  run: (asked: Envelope) => Promise<object>,
): Promise<void> {
  if (request.method !== 'POST') {
    response.writeHead(request.method === 'OPTIONS' ? 204 : 405, { ...cors, allow: 'POST' }).end();
    return;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= bodyBytesMax) chunks.push(chunk);
  }
  const reply = await run(bytes > bodyBytesMax ? {} : parsed(Buffer.concat(chunks).toString()));
  const status = 'error' in reply ? 400 : 200;
  response.writeHead(status, { ...cors, 'content-type': 'application/json' });
  response.end(JSON.stringify(reply));
}

function parsed(text: string): Envelope {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
