import { fstatSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../core/config/config.ts';
import type { Log } from '../../core/report/log.ts';
import { version } from '../../core/values/version.ts';
import type { Waymark } from '../../main.ts';
import type { Terminal } from '../command.ts';

const standardOutput = 1;

/** The inputs of announceStart. */
interface StartParts {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly logs: { readonly log: Log };
}

/**
 * Logs the addresses of the server, and shows the admin key of a first start. If standard error is
 * not a terminal, it writes the key to a file of the data folder, because other users may read a
 * journal or log file.
 */
export async function announceStart(
  { addresses, firstKey }: Pick<Waymark, 'addresses' | 'firstKey'>,
  { config, terminal: { err }, logs }: StartParts,
): Promise<void> {
  const { base, data, workers } = config.server;
  const file = firstKey !== undefined && err.isTTY !== true && (await writeKeyFile(firstKey, data));
  const processes = workers > 1 ? ` with ${workers} workers` : '';
  logs.log.info(
    { pid: process.pid },
    `Waymark ${version} serves ${addresses.join(' and ')}${processes}`,
  );
  const places = placesOf(config);
  if (places.length > 0 && !places.some((place) => addresses.includes(place))) {
    const shown = places.slice(0, placesShownMax).join(', ');
    const others = places.length - placesShownMax;
    const more = others > 0 ? ` and ${others} others` : '';
    logs.log.info({}, `Files and applications answer under their origins only: ${shown}${more}`);
  }
  if (firstKey === undefined) return;
  const url = `${addressForKey(addresses, config) ?? 'http://localhost'}${base}`;
  const shown =
    typeof file === 'string' ? `$(cat ${isPlain.test(file) ? file : `'${file}'`})` : firstKey;
  const where =
    typeof file === 'string'
      ? `your admin key is in this file, which only its owner can read:\n\n    ${file}`
      : `here is your admin key. It is shown only once.\n\n    ${firstKey}`;
  // In one write, so that no reader gets half of it.
  err.write(`
  This is the first start: ${where}

  Try it:
    curl -H "apikey: ${shown}" ${url}/svc1/server/status

`);
}

/** The origins of all folders and applications; none if one of them answers under every name. */
function placesOf({ disk, proxies }: Config): readonly string[] {
  const places = new Set([...disk, ...proxies].map(({ origin }) => origin));
  return places.has('*') ? [] : [...places];
}

const placesShownMax = 5;

/** Paths that a shell reads as one word without quotes. */
const isPlain = /^[\w./-]+$/;

/** Writes a key to a file of the data folder; resolves to its path, or undefined on failure. */
async function writeKeyFile(key: string, folder: string): Promise<string | undefined> {
  const file = join(folder, 'admin-key');
  try {
    await rm(file, { force: true });
    await writeFile(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
    return file;
  } catch {
    // The file cannot be written, and the key is never shown again: the caller prints it,
    // although a journal may record it.
    return undefined;
  }
}

/** The address for trying the key: https if plain HTTP redirects there. */
function addressForKey(addresses: readonly string[], { tls }: Config): string | undefined {
  const overTls = addresses.find((address) => address.startsWith('https:'));
  if (overTls !== undefined && tls.httpRedirect) return overTls;
  return addresses.find((address) => address.startsWith('http'));
}

/** Whether journald reads the standard output of this process (systemd.exec(5)). */
export function readsJournal(env: Terminal['env'], output = standardOutput): boolean {
  const journal = env.JOURNAL_STREAM;
  if (journal === undefined) return false;
  const { dev, ino } = fstatSync(output);
  return journal === `${dev}:${ino}`;
}
