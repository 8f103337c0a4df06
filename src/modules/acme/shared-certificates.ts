import type { AcmeConfig } from '../../core/config/config.ts';
import { type KeyPair, type RefusedPair, parseKeyPair } from '../../core/config/key-pair.ts';
import { type SecretsKey, readSecretsKeys } from '../../core/config/secrets-keys.ts';
import type { Refused } from '../../core/config/values.ts';
import type { ReadValues, ValueChange } from '../../core/log/shared/shared-values.ts';
import type { IssuedCertificate } from './acme-order.ts';
import { type HostState, acmeServerName, parseHostState } from './acme-store.ts';
import { AcmeFolder } from './folder.ts';
import { keyIdOf, seal, unseal } from './sealed.ts';

/** A certificate as it is stored: when it ends, and the encrypted pair, as JSON. */
interface StoredCertificate {
  /** ISO 8601, UTC. */
  readonly until: string;
  readonly sealed: string;
}

/** The values with encrypted account keys: this and the name of the ACME server. */
export const accountPrefix = 'acme account ';
const certificatePrefix = 'acme certificate ';
const statePrefix = 'acme state ';
const onDemandPrefix = 'acme on demand ';

/** The certificate of a host that a data folder has from its cluster; undefined for none. */
export async function readSharedPair(
  values: ReadValues,
  {
    server,
    host,
    keyFile,
  }: { readonly server: string; readonly host: string; readonly keyFile: string },
): Promise<KeyPair | RefusedPair | undefined> {
  const name = certificateKey(server, host);
  const stored = values.get(name);
  if (stored === undefined) return undefined;
  const { sealed } = JSON.parse(stored) as StoredCertificate;
  const read = await readSecretsKeys(keyFile);
  if ('refused' in read) {
    return { key: 'key', refused: `cannot be decrypted, because ${keyFile} ${read.refused}` };
  }
  const opened = unseal(sealed, name, read.keys);
  if ('text' in opened) {
    const { cert, key } = JSON.parse(opened.text) as IssuedCertificate;
    return parseKeyPair(cert, key);
  }
  const isKnown = read.keys.some(({ id }) => id === keyIdOf(sealed));
  const missing = `is encrypted with ${missingKey(keyIdOf(sealed), keyFile)}`;
  return { key: 'key', refused: isKnown ? opened.refused : missing };
}

/** The account key that a data folder has from its cluster; undefined for none. */
async function readSharedAccount(
  values: ReadValues,
  { server, keyFile }: { readonly server: string; readonly keyFile: string },
): Promise<{ readonly text: string } | Refused | undefined> {
  const name = accountPrefix + server;
  const sealed = values.get(name);
  if (sealed === undefined) return undefined;
  const read = await readSecretsKeys(keyFile);
  return 'refused' in read ? read : unseal(sealed, name, read.keys);
}

/**
 * The states of the certificates that a data folder has from its cluster, by their hosts; of one
 * ACME server, or of all.
 */
export function sharedStates(
  values: ReadValues,
  server?: string,
): readonly (readonly [host: string, HostState])[] {
  const prefix = server === undefined ? statePrefix : `${statePrefix}${server} `;
  return values.withPrefix(prefix).flatMap(([key, text]) => {
    const state = parseHostState(text);
    const host = key.slice(key.lastIndexOf(' ') + 1);
    return state === undefined ? [] : [[host, state] as const];
  });
}

/** The ids of the keys with which accounts and certificates are encrypted. */
export function usedKeys(values: ReadValues): readonly string[] {
  const accounts = values.withPrefix(accountPrefix).map(([, sealed]) => sealed);
  const certificates = values
    .withPrefix(certificatePrefix)
    .map(([, stored]) => (JSON.parse(stored) as StoredCertificate).sealed);
  return [...new Set([...accounts, ...certificates].map(keyIdOf))];
}

/** The name of the value with the certificate of a host. */
export function certificateKey(server: string, host: string): string {
  return `${certificatePrefix}${server} ${host}`;
}

/** The name of the value with the state of a host. */
export function stateKey(server: string, host: string): string {
  return `${statePrefix}${server} ${host}`;
}

/** The name of the value with the last use of a host that is not in the ini file. */
export function onDemandKey(server: string, host: string): string {
  return `${onDemandPrefix}${server} ${host}`;
}

/** The hosts that are not in the ini file, with the day of their last use. */
export function onDemandHosts(values: ReadValues, server: string): ReadonlyMap<string, number> {
  const prefix = onDemandKey(server, '');
  return new Map(
    values
      .withPrefix(prefix)
      .map(([key, iso]) => [key.slice(prefix.length), Date.parse(iso)] as const),
  );
}

/** A key that this machine lacks, as the end of a sentence. */
export function missingKey(id: string, keyFile: string): string {
  const advice = 'copy that file from another machine of the cluster';
  return `the key ${id}, which ${keyFile} does not have: ${advice}`;
}

/** The value of an issued certificate; throws an Error for one that cannot be used. */
export function storedOf(
  name: string,
  { cert, key }: IssuedCertificate,
  first: SecretsKey,
): string {
  const pair = parseKeyPair(cert, key);
  if ('refused' in pair) throw new Error(`The issued certificate ${pair.refused}.`);
  const until = pair.certificate.validToDate.toISOString();
  const sealed = seal(JSON.stringify({ cert, key }), name, first);
  return JSON.stringify({ until, sealed } satisfies StoredCertificate);
}

/** When a stored certificate ends, ISO 8601, UTC. */
export function untilOf(stored: string): string {
  return (JSON.parse(stored) as StoredCertificate).until;
}

/** The values that are not encrypted with the first key, encrypted with it. */
export function encryptedAgain(
  values: ReadValues,
  keys: readonly [SecretsKey, ...SecretsKey[]],
): readonly ValueChange[] {
  const again = (sealed: string, name: string): string | undefined => {
    if (keyIdOf(sealed) === keys[0].id) return undefined;
    const opened = unseal(sealed, name, keys);
    return 'refused' in opened ? undefined : seal(opened.text, name, keys[0]);
  };
  const accounts = values.withPrefix(accountPrefix).flatMap(([name, sealed]) => {
    const text = again(sealed, name);
    return text === undefined ? [] : [[name, text] as const];
  });
  const certificates = values.withPrefix(certificatePrefix).flatMap(([name, stored]) => {
    const { until, sealed } = JSON.parse(stored) as StoredCertificate;
    const text = again(sealed, name);
    return text === undefined ? [] : [[name, JSON.stringify({ until, sealed: text })] as const];
  });
  return [...accounts, ...certificates];
}

/**
 * Writes the certificates that a data folder has from its cluster, and the account key, into files,
 * as a single machine has them. Resolves to the hosts of those that it cannot write, each with the
 * reason as the end of a sentence.
 */
export async function writeAcmeFiles(
  values: ReadValues,
  {
    data,
    acme,
    keyFile,
  }: { readonly data: string; readonly acme: AcmeConfig; readonly keyFile: string },
): Promise<readonly { readonly host: string; readonly refused: string }[]> {
  const server = acmeServerName(acme.directory);
  const folder = new AcmeFolder(data, acme);
  const states = new Map(sharedStates(values, server));
  const left: { readonly host: string; readonly refused: string }[] = [];
  await folder.prepare();
  const account = await readSharedAccount(values, { server, keyFile });
  if (account !== undefined && 'text' in account) await folder.saveAccountKey(account.text);
  for (const host of acme.hosts) {
    const pair = await readSharedPair(values, { server, host, keyFile });
    if (pair === undefined) continue;
    if ('refused' in pair) {
      left.push({ host, refused: pair.refused });
      continue;
    }
    await folder.saveCertificate(host, pair);
    const state = states.get(host);
    if (state !== undefined) await folder.saveState(host, state);
  }
  return left;
}
