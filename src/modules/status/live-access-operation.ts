import type { StaticInput } from '../../core/values/json/static.ts';
import type { AccessRow, AccessRows, LiveAccess } from './live-access.ts';
import { defineOperation, type Packet } from '../../core/operations/operation.ts';

/** The parts of log.access; `now` is in milliseconds since 1970. */
interface AccessParts {
  readonly liveAccess: LiveAccess;
  readonly now: () => number;
}

const text = { type: 'string' } as const;
const optionalText = { type: 'string', nullable: true } as const;
const integer = { type: 'integer' } as const;

const rowSchema = {
  title: 'AccessRow',
  type: 'object',
  required: [...['time', 'address', 'method', 'host', 'target', 'status', 'bytes', 'ms', 'source']],
  properties: {
    time: { ...text, format: 'date-time', description: 'When the answer ended.' },
    address: { ...text, description: 'The address of the client.' },
    method: text,
    host: text,
    target: { ...text, description: 'Path and query as they were sent.' },
    status: integer,
    bytes: { ...integer, description: 'Bytes of content that were sent.' },
    ms: { type: 'number', description: 'From the arrival of the request to the end.' },
    source: { ...text, description: '`disk:<name>`, `rule:<id>`, `svc1` or `none`.' },
    user_agent: text,
    referer: text,
    cache: { ...text, description: 'What the cache did: `hit`, `miss` …' },
    id: { ...text, description: 'The id of the failure, which the answer shows, too.' },
    key: { ...text, description: 'The id of the key of the caller.' },
    cut: { type: 'boolean', description: 'Whether the connection ended before the answer.' },
  },
} as const;

const filters = {
  type: 'object',
  properties: {
    status: {
      ...optionalText,
      pattern: '^[1-5](?:xx|\\d\\d)$',
      description: 'A status, or a class such as 4xx.',
    },
    method: { ...optionalText, description: 'A method, such as GET.' },
    path: { ...optionalText, description: 'The start of the path.' },
    host: { ...optionalText, description: 'The host, with its port if it was sent.' },
    cache: { ...optionalText, description: 'What the cache did: hit, miss …' },
    address: { ...optionalText, description: 'The address of the client.' },
    ms_min: { type: 'number', nullable: true, description: 'Answers that took as long.' },
  },
} as const;

type AccessFilters = StaticInput<typeof filters>;

/** log.access: the access log of all processes from now on. Refuses with `rate_limited` and
 * `unavailable`. */
export const followAccess = defineOperation({
  name: 'svc1.log.access',
  scope: 'admin',
  effect: 'streams',
  ndjson: linesOf,
  summary: 'The access log as requests are answered; a slow reader misses lines, and is told.',
  failures: ['unavailable'],
  replies: { 200: 'A line of JSON for each request, without an end.', default: 'A failure.' },
  input: filters,
  output: {
    title: 'AccessFollowed',
    type: 'object',
    required: ['from'],
    properties: { from: { ...text, format: 'date-time', description: 'The time of the server.' } },
  },
  packets: {
    r: 'svc1.log.accessed',
    data: {
      title: 'AccessRows',
      type: 'object',
      required: ['rows', 'dropped'],
      properties: {
        rows: { type: 'array', items: rowSchema },
        dropped: {
          ...integer,
          description: 'Lines before these that are missing, because the reader was too slow.',
        },
      },
    },
  },
  run:
    ({ liveAccess, now }: AccessParts) =>
    (filters, { caller }) => {
      const read = liveAccess.read((row) => matches(filters, row), caller);
      return {
        kind: 'stream',
        data: { from: new Date(now()).toISOString() },
        stream: (signal) => packets(read(signal)),
      };
    },
});

async function* packets(lines: AsyncIterable<AccessRows>): AsyncGenerator<Packet, void, undefined> {
  for await (const data of lines) yield { r: 'svc1.log.accessed', data };
}

/** The lines of a packet: one for each request, after one with the number of missing ones. */
function linesOf({ data }: Packet): readonly unknown[] {
  const { rows, dropped } = data as AccessRows;
  return dropped > 0 ? [{ dropped }, ...rows] : rows;
}

function matches(filters: AccessFilters, row: AccessRow): boolean {
  const { status, method, path, host, cache, address, ms_min: msMin } = filters;
  return (
    (status === undefined || isStatus(row.status, status)) &&
    (method === undefined || row.method === method.toUpperCase()) &&
    (path === undefined || row.target.startsWith(path)) &&
    (host === undefined || row.host === host) &&
    (cache === undefined || row.cache === cache) &&
    (address === undefined || row.address === address) &&
    (msMin === undefined || row.ms >= msMin)
  );
}

function isStatus(status: number, wanted: string): boolean {
  const text = String(status);
  return wanted.endsWith('xx') ? text.startsWith(wanted.slice(0, 1)) : text === wanted;
}
