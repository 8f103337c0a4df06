import { randomBytes } from 'node:crypto';
import { uuidv7 } from 'uuidv7';
import { openData } from '../data.ts';
import { isKeyName, isScope, scopes, type Scope } from '../model/key.ts';
import { keyRateMax } from '../model/limits.ts';
import type { Store } from '../store/store.ts';
import { addKey, keyViews, revokedKeys, revokeKey, type NewKey } from '../api/keys/keys.ts';
import { say, UsageError, type Command, type Terminal } from './command.ts';
import { openExistingData } from './data.ts';
import { configOption, parseWords, requireConfig, requireNoMore } from './options.ts';

const author = 'waymark key';

/**
 * `waymark key add | list | revoke`: works on the data folder itself, also while a server runs on
 * it. The first key may be made before there is any data.
 */
export const key: Command = {
  usage:
    'key add --name N --scope S[,S] [--rate R] | list [--revoked] | revoke ID   ' +
    '[--config FILE] [--json]',
  summary: 'make, show and revoke API keys; the key alone goes to standard output, once',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...configOption,
      name: { type: 'string' },
      scope: { type: 'string', multiple: true },
      rate: { type: 'string' },
      revoked: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    });
    const [action, ...rest] = positionals;
    const act = actionOf(action, rest, values);
    const config = await requireConfig(values.config, terminal);
    const store = await (action === 'add'
      ? openData(config.server.data)
      : openExistingData(config));
    try {
      await act(store, { terminal, json: values.json });
      return 0;
    } finally {
      await store.close();
    }
  },
};

type Act = (store: Store, to: { terminal: Terminal; json: boolean }) => Promise<void>;

function actionOf(
  action: string | undefined,
  rest: readonly string[],
  {
    name,
    scope,
    rate,
    revoked,
  }: {
    name?: string | undefined;
    scope?: string[] | undefined;
    rate?: string | undefined;
    revoked: boolean;
  },
): Act {
  if (revoked && action !== 'list') throw new UsageError('--revoked is for key list.');
  if (action === 'add') {
    requireNoMore(rest);
    return add({
      name: requireName(name),
      scopes: requireScopes(scope ?? []),
      ...(rate !== undefined && { rate: requireRate(rate) }),
    });
  }
  if (action === 'list') {
    requireNoMore(rest);
    return revoked ? listRevoked : list;
  }
  const [id, ...more] = rest;
  if (action !== 'revoke' || id === undefined) {
    throw new UsageError(action === 'revoke' ? 'Which key? Give its id.' : 'add, list or revoke?');
  }
  requireNoMore(more);
  return revoke(id);
}

function add(given: NewKey): Act {
  return async (store, { terminal, json }) => {
    const parts = { store, newId: uuidv7, randomBytes, now: Date.now };
    const made = await addKey(parts, { ...given, by: author });
    if (json) {
      say(terminal.out, JSON.stringify(made));
      return;
    }
    say(terminal.out, made.key);
    const { id, name, scopes, rate } = made;
    const limit = rate === undefined ? '' : `, ${rate} operations a second`;
    say(terminal.err, `Key ${id} (${name}: ${scopes.join(', ')}${limit}). It is not shown again.`);
  };
}

const list: Act = (store, { terminal, json }) => {
  const rows = keyViews(store);
  for (const { id, name, scopes, created, rate } of json ? [] : rows) {
    const limit = rate === undefined ? '-' : `${rate}/s`;
    say(terminal.out, [id, created, scopes.join(','), name, limit].join('\t'));
  }
  if (json) say(terminal.out, JSON.stringify({ rows }));
  else if (rows.length === 0) say(terminal.err, 'There are no keys yet.');
  return Promise.resolve();
};

const listRevoked: Act = (store, { terminal, json }) => {
  const rows = revokedKeys(store);
  for (const { id, name, scopes, created, revoked, revoked_by: by } of json ? [] : rows) {
    const end = `revoked ${revoked} by ${by}`;
    say(terminal.out, [id, created, scopes.join(','), name, end].join('\t'));
  }
  if (json) say(terminal.out, JSON.stringify({ rows }));
  else if (rows.length === 0) say(terminal.err, 'No key has been revoked.');
  return Promise.resolve();
};

function revoke(id: string): Act {
  return async (store, { terminal, json }) => {
    await revokeKey(store, id, author);
    if (json) say(terminal.out, JSON.stringify({ id, revoked: true }));
    else say(terminal.err, `Key ${id} is revoked.`);
  };
}

function requireName(name: string | undefined): string {
  if (name !== undefined && isKeyName(name)) return name;
  throw new UsageError('Give the key a name of one line, at most 128 characters: --name N.');
}

function requireRate(text: string): number {
  const rate = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (rate >= 1 && rate <= keyRateMax) return rate;
  throw new UsageError(`--rate is a whole number of operations a second, 1 to ${keyRateMax}.`);
}

function requireScopes(given: readonly string[]): readonly Scope[] {
  const named = given.flatMap((text) => text.split(',')).map((text) => text.trim());
  const unknown = named.find((text) => !isScope(text));
  if (named.length === 0 || unknown !== undefined) {
    const problem =
      unknown === undefined ? 'Give at least one scope' : `No scope is called ${unknown}`;
    throw new UsageError(`${problem}: --scope with one or more of ${scopes.join(', ')}.`);
  }
  return [...new Set(named.filter(isScope))];
}
