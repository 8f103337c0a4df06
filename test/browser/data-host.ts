import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';

/**
 * A data host in memory, as forms may name one: tables behind the envelope `{a, v, vk}`, by HTTP
 * POST and over a websocket. `a` is `<table>.insert`, `.read`, `.edit`,
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

/** Starts a data host on a free port of the loopback, with tables by their JSON Schemas. */
export async function startDataHost(tables: ReadonlyMap<string, object>): Promise<DataHost> {
  const records = new Map<string, Map<string, Fields>>();
  const answers = new Map<string, { readonly text: string; readonly data: unknown }>();
  const ajv = new Ajv2020({ strict: false, logger: false });
  const validators = new Map([...tables].map(([name, schema]) => [name, ajv.compile(schema)]));
  const run = (asked: Envelope): object => answer(asked, { records, answers, validators });

  const server = createServer((request, response) => void serveHttp(request, response, run));
  const sockets = new WebSocketServer({ server, maxPayload: bodyBytesMax });
  sockets.on('connection', (socket) => {
    socket.on('message', (text: Buffer) => {
      socket.send(JSON.stringify(run(parsed(text.toString()))));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Parts {
  /** The records of each table by their ids. */
  readonly records: Map<string, Map<string, Fields>>;
  readonly answers: Map<string, { readonly text: string; readonly data: unknown }>;
  readonly validators: ReadonlyMap<string, ValidateFunction>;
}

/** Executes an envelope, once for each vk, and returns the result. */
function answer(envelope: Envelope, parts: Parts): object {
  const { a = '', v = {}, vk, id } = envelope;
  const echo = id === undefined ? { r: a } : { r: a, id };
  try {
    const text = JSON.stringify([a, v]);
    const known = vk === undefined ? undefined : parts.answers.get(vk);
    if (known?.text === text) return { ...echo, data: known.data };
    if (known !== undefined) {
      throw new Refusal('conflict', 'This vk stands for something else.', 'vk');
    }
    const data = operate(a, v, parts);
    if (vk !== undefined) parts.answers.set(vk, { text, data });
    return { ...echo, data };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, message, field } = error;
    return { ...echo, error: { code, message, ...(field !== undefined && { field }) } };
  }
}

/** The id of the latest record of this process. */
let lastId = 0;

function operate(a: string, v: Fields, { records, validators }: Parts): unknown {
  const [table = '', operation = ''] = a.split('.');
  const validate = validators.get(table);
  if (validate === undefined) throw new Refusal('not_found', `There is no table ${table}.`);
  const { id, if_seq: ifSeq, ...fields } = v;
  const rows = records.get(table) ?? new Map<string, Fields>();
  records.set(table, rows);
  const before = typeof id === 'string' ? rows.get(id) : undefined;
  if (operation === 'list') return { rows: [...rows.values()].toReversed() };
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
      rows.delete(String(id));
      return before;
    case 'insert': {
      lastId += 1;
      const own = String(lastId).padStart(8, '0');
      return put(validate, rows, { ...fields, id: own, seq });
    }
    case 'edit': {
      const changed = Object.entries({ ...before, ...fields }).filter(([, one]) => one !== null);
      return put(validate, rows, { ...Object.fromEntries(changed), id, seq });
    }
    default:
      throw new Refusal('not_found', `There is no operation ${a}.`);
  }
}

function put(validate: ValidateFunction, rows: Map<string, Fields>, record: Fields): Fields {
  const { id, seq: _seq, ...fields } = record;
  if (!validate(fields)) throw refusalOf(validate.errors?.[0]);
  rows.set(String(id), record);
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

/** Pages of any origin may send requests: the data is made up. */
const cors = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'content-type',
  'access-control-max-age': '600',
};

async function serveHttp(
  request: IncomingMessage,
  response: ServerResponse,
  run: (asked: Envelope) => object,
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
  const reply = run(bytes > bodyBytesMax ? {} : parsed(Buffer.concat(chunks).toString()));
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
