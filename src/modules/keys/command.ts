import { silentLog } from '../../core/report/log.ts';
import { randomBytes } from 'node:crypto';
import { InvalidArgumentError, type Command } from 'commander';
import { newId, now } from '../../core/values/clock.ts';
import { boundsText, type Bounds } from '../../core/values/bounds.ts';
import { boundsOf, isKeyName, isScope, scopes, type Scope } from '../../core/values/key.ts';
import { keyRateMax } from '../../core/config/limits.ts';
import type { Store } from '../../core/log/store.ts';
import { addKey, editKey, endless, listedKeys, readKey, revokedKeys, revokeKey } from './keys.ts';
import { table } from '../../cli/remote/client-command.ts';
import { writeLine, UsageError, type DefineCommand, type Terminal } from '../../cli/command.ts';
import { openData, openDataToRead, openExistingData, requireData } from '../../cli/open-data.ts';
import {
  configOption,
  jsonOption,
  momentOf,
  requireChoice,
  requireConfig,
} from '../../cli/options.ts';

const author = 'waymark key';

const untilText = 'when it ends: 90d, 2026-12-01T07:00Z, or 2026-12-01T08:00[Europe/Berlin]';

interface KeyOptions {
  readonly config?: string;
  readonly json: boolean;
}

/**
 * `waymark key add | edit | read | list | revoke`: opens the data folder directly, also while a
 * server uses it. `--new-data` creates the folder for its first key.
 */
export const defineKey: DefineCommand = (command, terminal) => {
  command.description('Create, edit, list and revoke API keys directly in the data folder.');
  withOptions(
    command
      .command('add')
      .description('Create a key, and print it on standard output. It is not shown again.')
      .requiredOption('--name <name>', 'what the key is for')
      .requiredOption(
        '--scope <scopes>',
        `one or more of ${scopes.join(', ')}, record.read:TABLE, verify:HOOK`,
        collectScopes,
      )
      .option('--rate <n>', 'the most operations a second that it may call', requireRate)
      .option('--until <end>', untilText)
      .option('--node <name>', 'for the scope follow: the node that may use the key')
      .option('--origin <origin>', 'bind it to page rules of this origin; repeatable', collect)
      .option('--path <path>', 'bind it to paths below this one, as /blog/; repeatable', collect)
      .option('--new-data', 'create the data folder if it does not exist', false),
  ).action(async (options: AddOptions & { newData: boolean }) => {
    const config = await requireConfig(options.config, terminal);
    // If the real folder was renamed or is not mounted, a key in a new one would be useless.
    if (!options.newData) await requireData(config.server.data, '; --new-data creates it');
    const cluster = { settings: config.cluster, log: silentLog };
    const opened = await openData(config.server.data, { cluster });
    await using(opened, (store) => add(store, options, terminal));
  });
  defineEdit(command, terminal);
  withOptions(
    command
      .command('list')
      .description(
        'List the keys, and when this node last got each; a use may be shown a minute later. The ' +
          'texts of keys are not stored.',
      )
      .option('--revoked', 'list revoked keys instead', false),
  ).action(async (options: KeyOptions & { revoked: boolean }) => {
    const config = await requireConfig(options.config, terminal);
    await using(await openDataToRead(config), (store) => {
      (options.revoked ? listRevoked : list)(store, options, terminal);
    });
  });
  withOptions(
    command
      .command('revoke')
      .description('Revoke a key at once, also while the server runs.')
      .argument('<id>', 'the id of the key'),
  ).action(async (id: string, options: KeyOptions) => {
    const config = await requireConfig(options.config, terminal);
    await using(await openExistingData(config), (store) => revoke(store, id, options, terminal));
  });
};

/** `waymark key edit | read`. */
function defineEdit(command: Command, terminal: Terminal): void {
  withOptions(
    command
      .command('edit')
      .description('Change the name of a key, or when it ends, also while the server runs.')
      .argument('<id>', 'the id of the key')
      .option('--name <name>', 'what the key is for')
      .option('--until <end>', `${untilText}, or ${endless}`),
  ).action(async (id: string, options: EditOptions) => {
    const config = await requireConfig(options.config, terminal);
    await using(await openExistingData(config), (store) => edit(store, id, options, terminal));
  });
  withOptions(
    command
      .command('read')
      .description('Print a key, without its text: its scopes, its end, and its last use.')
      .argument('<id>', 'the id of the key'),
  ).action(async (id: string, options: KeyOptions) => {
    const config = await requireConfig(options.config, terminal);
    await using(await openDataToRead(config), (store) => {
      const key = readKey(store, id, timesOf(store));
      const space = options.json ? undefined : 2;
      writeLine(terminal.out, JSON.stringify(key, undefined, space));
    });
  });
}

function withOptions(one: Command): Command {
  return one.addOption(configOption()).addOption(jsonOption());
}

/** Runs an action with a store, and closes the store. */
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
  readonly until?: string;
  readonly node?: string;
  readonly origin?: readonly string[];
  readonly path?: readonly string[];
}

async function add(
  store: Store,
  { name, scope, rate, until, node, origin, path, json }: AddOptions,
  { out, err }: Terminal,
): Promise<void> {
  const parts = { store, newId, randomBytes, now };
  const created = await addKey(parts, {
    name: requireName(name),
    scopes: scope,
    ...(rate !== undefined && { rate }),
    ...(until !== undefined && { until: momentOf(until) }),
    ...(node !== undefined && { node }),
    ...(origin !== undefined && { origins: origin }),
    ...(path !== undefined && { paths: path }),
    by: author,
  });
  if (json) {
    writeLine(out, JSON.stringify(created));
    return;
  }
  writeLine(out, created.key);
  const limit = rate === undefined ? '' : `, ${rate} operations a second`;
  const bounds = boundsOf(created);
  const bound = bounds === undefined ? '' : `, bound to ${boundsText(bounds)}`;
  const end = created.until === undefined ? '' : `, until ${created.until}`;
  const what = `${name}: ${scope.join(', ')}${limit}${bound}${end}`;
  writeLine(err, `Key ${created.id} (${what}). It is not shown again.`);
}

interface EditOptions extends KeyOptions {
  readonly name?: string;
  readonly until?: string;
}

async function edit(
  store: Store,
  id: string,
  { name, until, json }: EditOptions,
  { out, err }: Terminal,
): Promise<void> {
  if (name === undefined && until === undefined) throw new UsageError('Add --name or --until.');
  await editKey({ store, now }, id, {
    ...(name !== undefined && { name: requireName(name) }),
    ...(until !== undefined && { until: momentOf(until) }),
    by: author,
  });
  const key = readKey(store, id, timesOf(store));
  if (json) writeLine(out, JSON.stringify(key));
  else writeLine(err, `Key ${id} (${key.name}) ends: ${key.until ?? endless}.`);
}

function timesOf({ keyUses }: Pick<Store, 'keyUses'>): Parameters<typeof listedKeys>[1] {
  return { lastUses: keyUses.all(), nowMs: now() };
}

function list(store: Store, { json }: KeyOptions, { out, err }: Terminal): void {
  const rows = listedKeys(store, timesOf(store));
  if (json) writeLine(out, JSON.stringify({ rows }));
  else if (rows.length === 0) writeLine(err, 'There are no keys yet.');
  else {
    const cells = rows.map((key) => [
      ...[key.id, key.created, key.last_used ?? 'never', key.scopes.join(',')],
      ...[key.rate === undefined ? '-' : `${key.rate}/s`, boundsCell(key), endCell(key), key.name],
    ]);
    const names = ['ID', 'CREATED', 'LAST USED', 'SCOPES', 'RATE', 'BOUNDS', 'UNTIL', 'NAME'];
    const lines = table(names, cells);
    for (const line of lines) writeLine(out, line);
  }
}

function listRevoked(store: Store, { json }: KeyOptions, { out, err }: Terminal): void {
  const rows = revokedKeys(store);
  if (json) writeLine(out, JSON.stringify({ rows }));
  else if (rows.length === 0) writeLine(err, 'No key has been revoked.');
  else {
    const cells = rows.map((key) => [
      ...[key.id, key.created, key.scopes.join(','), boundsCell(key)],
      ...[key.revoked, key.revoked_by, key.name],
    ]);
    const names = ['ID', 'CREATED', 'SCOPES', 'BOUNDS', 'REVOKED', 'BY', 'NAME'];
    const lines = table(names, cells);
    for (const line of lines) writeLine(out, line);
  }
}

async function revoke(
  store: Store,
  id: string,
  { json }: KeyOptions,
  { out, err }: Terminal,
): Promise<void> {
  await revokeKey(store, id, author);
  if (json) writeLine(out, JSON.stringify({ id, revoked: true }));
  else writeLine(err, `Key ${id} is revoked.`);
}

/** When a key ends, in one cell. */
function endCell({ until, state }: ReturnType<typeof listedKeys>[number]): string {
  if (until === undefined) return '-';
  return state === 'valid' ? until : `${until} (${state})`;
}

/** What a key is bound to, in one cell. */
function boundsCell(key: Bounds): string {
  const bounds = boundsOf(key);
  return bounds === undefined ? '-' : boundsText(bounds);
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

function requireName(name: string): string {
  if (isKeyName(name)) return name;
  throw new UsageError('--name must be one line of at most 128 characters.');
}

function requireRate(text: string): number {
  const rate = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (rate >= 1 && rate <= keyRateMax) return rate;
  throw new InvalidArgumentError(
    `Write a whole number of operations a second, 1 to ${keyRateMax}.`,
  );
}

/** Scopes separated by commas; the option may be repeated. */
function collectScopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  const named = text.split(',').map((part) => {
    const one = part.trim();
    return isScope(one) ? one : requireChoice(one, scopes);
  });
  return [...new Set([...before, ...named.filter(isScope)])];
}
