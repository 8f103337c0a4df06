import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Waymark } from '../main.ts';
import type { Log } from '../observability/log.ts';
import { version } from '../version.ts';
import type { Terminal } from './command.ts';

/** What is said at the start. */
interface Greeting {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly logs: { readonly log: Log };
}

/**
 * Logs where the server can be reached, and shows the admin key of a first start: on a terminal, or
 * in a file of the data folder where standard error goes to a journal or a log file, in which a key
 * would stay readable for others.
 */
export async function greet(
  { addresses, firstKey }: Pick<Waymark, 'addresses' | 'firstKey'>,
  { config, terminal: { err }, logs }: Greeting,
): Promise<void> {
  const { base, data, workers } = config.server;
  const file = firstKey !== undefined && err.isTTY !== true && (await keep(firstKey, data));
  const processes = workers > 1 ? ` with ${workers} workers` : '';
  logs.log.info(
    { pid: process.pid },
    `Waymark ${version} serves ${addresses.join(' and ')}${processes}`,
  );
  if (firstKey === undefined) return;
  const url = `${addressForKey(addresses, config) ?? 'http://localhost'}${base}`;
  const shown =
    typeof file === 'string' ? `$(cat ${isPlain.test(file) ? file : `'${file}'`})` : firstKey;
  const where =
    typeof file === 'string'
      ? `your admin key is in this file, which only its owner can read:\n\n    ${file}`
      : `here is your admin key. It is shown only this once.\n\n    ${firstKey}`;
  // In one piece, so that no reader sees half of it.
  err.write(`
  This is the first start: ${where}

  Try it:
    curl -H "apikey: ${shown}" ${url}/svc1/server/status

`);
}

/** Of a path that a shell takes as one word. */
const isPlain = /^[\w./-]+$/;

/** Writes a key to a file of the data folder; resolves to its path, undefined if that fails. */
async function keep(key: string, folder: string): Promise<string | undefined> {
  const file = join(folder, 'admin-key');
  try {
    await rm(file, { force: true });
    await writeFile(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
    return file;
  } catch {
    // The key can be shown only now: better in a journal than nowhere.
    return undefined;
  }
}

/** Where to try a key: not in the clear, where that is sent on to https. */
function addressForKey(addresses: readonly string[], { tls }: Config): string | undefined {
  const overTls = addresses.find((address) => address.startsWith('https:'));
  if (overTls !== undefined && tls.httpRedirect) return overTls;
  return addresses.find((address) => address.startsWith('http'));
}
