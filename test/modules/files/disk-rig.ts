import { readdirSync, readlinkSync } from 'node:fs';
import http, { type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createCompressors } from '../../../src/modules/compression/compressors.ts';
import type { DiskMount } from '../../../src/core/config/config.ts';
import { configFieldName, defaultValue, type IniKey } from '../../../src/core/config/ini-key.ts';
import type { Reply } from '../../../src/core/http/reply.ts';
import type { Fields } from '../../../src/core/http/request.ts';
import { createDisk } from '../../../src/modules/files/disk.ts';
import { pathOf } from '../../request-path.ts';
import { someVisitor } from '../../visitor.ts';
import { sections } from '../../ini.ts';

/** A complete answer. */
export interface Seen {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

/** Requests a target exactly as written; fetch would normalise it. */
export async function ask(
  url: string,
  target: string,
  {
    method = 'GET',
    headers = {},
  }: { readonly method?: string; readonly headers?: OutgoingHttpHeaders } = {},
): Promise<Seen> {
  const { hostname, port } = new URL(url);
  const message = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const options = { hostname, port, path: target, method, headers, agent: false };
    http.request(options, resolve).once('error', reject).end();
  });
  const bytes = await buffer(message);
  return {
    status: message.statusCode ?? 0,
    fields: message.headers,
    bytes,
    text: bytes.toString(),
  };
}

/** A wait between looks leaves the processor to other tests. */
const betweenLooksMs = 10;

/** Calls `look` until its result is accepted; after a deadline, fails with the last result. */
export async function eventually<T>(
  look: () => Promise<T> | T,
  isWanted: (seen: T) => boolean,
): Promise<T> {
  const deadlineMs = performance.now() + 10_000;
  for (;;) {
    const seen = await look();
    if (isWanted(seen)) return seen;
    if (performance.now() > deadlineMs) throw new Error(`still ${JSON.stringify(seen)}`);
    await pause(betweenLooksMs);
  }
}

/** A mount of a folder; by default for `/` of every origin. */
export function mountOf(root: string, options: Partial<DiskMount> = {}): DiskMount {
  const keys = Object.entries<IniKey<unknown>>(sections['disk.<name>'] ?? {});
  const defaults = Object.fromEntries(
    keys.map(([name, key]) => [configFieldName(name, key), defaultValue(key)]),
  ) as unknown as DiskMount;
  return {
    ...defaults,
    name: 'site',
    root,
    precompressed: false,
    compress: false,
    headers: [],
    redirectsText: undefined,
    headerBlocks: [],
    fileWarnings: [],
    ...options,
  };
}

/** The disk source alone, with requests by path and fields; `now` is its clock. */
export function visitDisk(
  t: Pick<TestContext, 'after'>,
  mounts: readonly DiskMount[],
  now: () => number = Date.now,
): (path: string, fields?: Fields) => Promise<Reply | undefined> {
  const disk = createDisk({ mounts, now, compressors: createCompressors() });
  t.after(() => disk.close());
  return async (path, fields = {}) =>
    disk.respond({
      method: 'GET',
      origin: 'http://visible.example',
      ...pathOf(path),
      query: '',
      fields,
      address: '192.0.2.7',
      visitor: someVisitor(),
      body: undefined,
      signal: new AbortController().signal,
    });
}

/** The content of an answer from memory. */
export function heldText(reply: Reply | undefined): string | undefined {
  return reply?.body.kind === 'bytes' ? reply.body.bytes.toString() : undefined;
}

/** The number of descriptors of this process that are open for a file. */
export function openDescriptors(path: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(path);
    } catch {
      // The descriptor that read the folder is closed by now.
      return false;
    }
  }).length;
}
