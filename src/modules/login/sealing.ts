import { createHash, randomBytes } from 'node:crypto';
import type { SecretsKey } from '../../core/config/secrets-keys.ts';
import { seal, unseal } from '../acme/sealed.ts';
import type { LoginKey } from './login-session.ts';
import type { LoginSessions } from './stored-sessions.ts';

/** How long a key seals cookies of started sign-ins; it opens them for as long again. */
const sealingKeyMs = 86_400_000;

/** Seals what a browser keeps for the server, so that it can neither read nor change it. */
export interface Sealing {
  /** Seals a value for a purpose, with the newest key. Rejects if no key can be stored. */
  seal(purpose: string, value: object): Promise<string>;
  /** The value that was sealed for a purpose; undefined for any other text. */
  open(purpose: string, sealed: string): unknown;
}

/**
 * Creates the sealing with the keys of a data folder, which all of its workers share. A key seals
 * for a day and opens for another one, so its rotation disturbs no sign-in.
 */
export function createSealing(
  store: Pick<LoginSessions, 'keys' | 'changeKeys'>,
  now: () => number,
): Sealing {
  const isFresh = ({ createdMs }: LoginKey): boolean => {
    const age = now() - createdMs;
    return age >= -sealingKeyMs && age < sealingKeyMs;
  };
  const rotated = (keys: readonly LoginKey[]): readonly LoginKey[] => {
    // Another worker may have been faster.
    if (keys[0] !== undefined && isFresh(keys[0])) return keys;
    const secret = randomBytes(32).toString('base64');
    const kept = keys.filter(({ createdMs }) => now() - createdMs < 2 * sealingKeyMs);
    return [{ secret, createdMs: now() }, ...kept.slice(0, 1)];
  };
  return {
    async seal(purpose, value) {
      const [known] = store.keys();
      const [newest = known] =
        known !== undefined && isFresh(known) ? [known] : await store.changeKeys(rotated);
      if (newest === undefined) throw new TypeError('there is no key');
      return seal(JSON.stringify(value), purpose, keyOf(newest));
    },
    open(purpose, sealed) {
      const keys = store.keys().filter(({ createdMs }) => now() - createdMs < 2 * sealingKeyMs);
      const opened = unseal(sealed, purpose, keys.map(keyOf));
      return 'refused' in opened ? undefined : (JSON.parse(opened.text) as unknown);
    },
  };
}

function keyOf({ secret }: LoginKey): SecretsKey {
  const bytes = Buffer.from(secret, 'base64');
  return { id: createHash('sha256').update(bytes).digest('hex').slice(0, 8), bytes };
}
