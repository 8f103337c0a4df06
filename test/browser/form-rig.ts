import { before, after } from 'node:test';
import { startSite, type TestSite } from '../harness.ts';
import { startDataHost, type DataHost } from './data-host.ts';

/** A table of letters with a field of every type that a form has. */
export const letters = {
  title: 'Letter',
  type: 'object',
  required: ['name', 'email', 'lamp', 'message', 'terms'],
  properties: {
    name: { type: 'string', title: 'Your name', minLength: 2, maxLength: 60 },
    email: { type: 'string', format: 'email', description: 'Where we can answer.' },
    lamp: { enum: ['Tern', 'Dunlin', 'Heron'] },
    finish: {
      oneOf: [
        { const: 1, title: 'Brass' },
        { const: 2, title: 'Slate' },
      ],
    },
    count: { type: 'integer', minimum: 1, maximum: 9, default: 1 },
    price: { type: ['number', 'null'], exclusiveMinimum: 0 },
    wanted_on: { type: 'string', format: 'date' },
    call_at: { type: 'string', format: 'date-time' },
    code: { type: 'string', pattern: '^[A-Z]{3}-[0-9]$' },
    gift: { type: 'boolean' },
    message: { type: 'string', maxLength: 2000 },
    rooms: { type: 'array', uniqueItems: true, items: { enum: ['desk', 'wall', 'floor'] } },
    guests: { type: 'array', maxItems: 2, items: { type: 'string', title: 'Guest', minLength: 1 } },
    address: {
      type: 'object',
      required: ['city'],
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
    terms: { const: true, type: 'boolean', title: 'I have read the small print' },
  },
} as const;

/** A site with the pages of the letters, and their data host. */
export interface LetterSite {
  readonly site: () => TestSite;
  readonly host: () => DataHost;
}

/** Starts both before the tests of a file; the pages are at /new, /edit/*, /delete/* and /ws/…. */
export function letterSite(): LetterSite {
  let site: TestSite | undefined;
  let host: DataHost | undefined;
  const cleaning: (() => unknown)[] = [];
  const later = { after: (cleanup: () => unknown) => void cleaning.unshift(cleanup) };
  before(async () => {
    const started = await startDataHost(new Map([['letters', letters]]));
    later.after(() => started.close());
    host = started;
    const sockets = started.url.replace('http', 'ws');
    const form = (kind: string, path: string, url = started.url) => ({
      path,
      kind: `${kind}-record`,
      table: 'letters',
      engine: 'form',
      lang: 'en',
      enginedata: {
        title: `${kind} a letter`,
        submit: { url, a: `letters.${kind}`, if_seq: true },
        cancel: '/new',
        done: { links: [{ href: '/edit/{id}', label: 'Change it' }] },
      },
    });
    site = await startSite(later, {
      ini: '[table.letters]\nschema = letters.json\n',
      files: { 'letters.json': JSON.stringify(letters) },
      rules: [
        form('insert', '/new'),
        form('edit', '/edit/*'),
        form('delete', '/delete/*'),
        form('insert', '/ws/new', sockets),
        form('edit', '/ws/edit/*', sockets),
      ],
    });
  });
  after(async () => {
    for (const cleanup of cleaning) await cleanup();
  });
  const there = <T>(one: T | undefined): T => {
    if (one === undefined) throw new Error('The site has not been started yet.');
    return one;
  };
  return { site: () => there(site), host: () => there(host) };
}

/** Calls a data host directly. */
export async function askHost(host: DataHost, a: string, v: object): Promise<unknown> {
  const reply = await fetch(host.url, { method: 'POST', body: JSON.stringify({ a, v }) });
  return ((await reply.json()) as { data?: unknown }).data;
}
