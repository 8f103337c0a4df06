import { randomBytes } from 'node:crypto';
import { InvalidArgumentError, type Command } from 'commander';
import { newId, now } from '../model/clock.ts';
import { isKeyName, isScope, scopes, type Scope } from '../model/key.ts';
import { keyRateMax } from '../config/limits.ts';
import type { Store } from '../store/store.ts';
import { addKey, keyViews, revokedKeys, revokeKey } from '../api/keys/keys.ts';
import { table } from './client.ts';
import { say, UsageError, type DefineCommand, type Terminal } from './command.ts';
import { openData, openDataToRead, openExistingData, requireData } from '../data.ts';
import { configOption, jsonOption, requireChoice, requireConfig } from './options.ts';

const author = 'waymark key';

interface KeyOptions {
  readonly config?: string;
  readonly json: boolean;
}

/**
 * `waymark key add | list | revoke`: works on the data folder itself, also while a server runs on
 * it. With `--new-data`, the first key is made before there is any data.
 */
export const defineKey: DefineCommand = (command, terminal) => {
  command.description('Make, list and revoke API keys, in the data folder itself.');
  const options = (one: Command) => one.addOption(configOption()).addOption(jsonOption());
  options(
    command
      .command('add')
      .description('Make a key, and print it alone on standard output, once.')
      .requiredOption('--name <name>', 'what the key is for')
      .requiredOption('--scope <scopes>', `one or more of ${scopes.join(', ')}`, collectScopes)
      .option('--rate <n>', 'operations a second that it may call', requireRate)
      .option('--new-data', 'make a data folder where there is none yet', false),
  ).action(async (given: AddOptions & { newData: boolean }) => {
    const config = await requireConfig(given.config, terminal);
    // A key in a new folder beside one that was renamed, or is not mounted, would be of no use.
    if (!given.newData) await requireData(config.server.data, '; --new-data makes it');
    await using(await openData(config.server.data), (store) => add(store, given, terminal));
  });
  options(
    command
      .command('list')
      .description('List keys, without their secret.')
      .option('--revoked', 'those that were revoked', false),
  ).action(async (given: KeyOptions & { revoked: boolean }) => {
    const config = await requireConfig(given.config, terminal);
    await using(await openDataToRead(config), (store) => {
      (given.revoked ? listRevoked : list)(store, given, terminal);
    });
  });
  options(
    command
      .command('revoke')
      .description('Revoke a key at once, also while the server runs.')
      .argument('<id>', 'the id of the key'),
  ).action(async (id: string, given: KeyOptions) => {
    const config = await requireConfig(given.config, terminal);
    await using(await openExistingData(config), (store) => revoke(store, id, given, terminal));
  });
};

/** Does something with a store and closes it. */
async function using(store: Store, act: (store: Store) => void | Promise<void>): Promise<void> {
  try {
    await act(store);
  } finally {
    await store.close();
  }
}

interface AddOptions extends KeyOptions {
  readonly name: string;
  readonly scope: readonly Scope[];
  readonly rate?: number;
}

async function add(
  store: Store,
  { name, scope, rate, json }: AddOptions,
  { out, err }: Terminal,
): Promise<void> {
  const parts = { store, newId, randomBytes, now };
  const made = await addKey(parts, {
    name: requireName(name),
    scopes: scope,
    ...(rate !== undefined && { rate }),
    by: author,
  });
  if (json) {
    say(out, JSON.stringify(made));
    return;
  }
  say(out, made.key);
  const limit = rate === undefined ? '' : `, ${rate} operations a second`;
  say(err, `Key ${made.id} (${name}: ${scope.join(', ')}${limit}). It is not shown again.`);
}

function list(store: Store, { json }: KeyOptions, { out, err }: Terminal): void {
  const rows = keyViews(store);
  if (json) say(out, JSON.stringify({ rows }));
  else if (rows.length === 0) say(err, 'There are no keys yet.');
  else {
    const cells = rows.map(({ id, name, scopes: allowed, created, rate }) => [
      ...[id, created, allowed.join(','), rate === undefined ? '-' : `${rate}/s`, name],
    ]);
    const lines = table(['ID', 'CREATED', 'SCOPES', 'RATE', 'NAME'], cells);
    for (const line of lines) say(out, line);
  }
}

function listRevoked(store: Store, { json }: KeyOptions, { out, err }: Terminal): void {
  const rows = revokedKeys(store);
  if (json) say(out, JSON.stringify({ rows }));
  else if (rows.length === 0) say(err, 'No key has been revoked.');
  else {
    const cells = rows.map(({ id, name, scopes: allowed, created, revoked, revoked_by: by }) => [
      ...[id, created, allowed.join(','), revoked, by, name],
    ]);
    const lines = table(['ID', 'CREATED', 'SCOPES', 'REVOKED', 'BY', 'NAME'], cells);
    for (const line of lines) say(out, line);
  }
}

async function revoke(
  store: Store,
  id: string,
  { json }: KeyOptions,
  { out, err }: Terminal,
): Promise<void> {
  await revokeKey(store, id, author);
  if (json) say(out, JSON.stringify({ id, revoked: true }));
  else say(err, `Key ${id} is revoked.`);
}

function requireName(name: string): string {
  if (isKeyName(name)) return name;
  throw new UsageError('--name is one line of at most 128 characters.');
}

function requireRate(text: string): number {
  const rate = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (rate >= 1 && rate <= keyRateMax) return rate;
  throw new InvalidArgumentError(
    `Write a whole number of operations a second, 1 to ${keyRateMax}.`,
  );
}

/** Scopes with commas between them; the option may be given several times. */
function collectScopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const named = text.split(',').map((one) => requireChoice(one.trim(), scopes));
  return [...new Set([...before, ...named.filter(isScope)])];
}
