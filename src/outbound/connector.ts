import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import type { Cidr } from '../model/cidr.ts';
import { addressProblem } from './address.ts';
import { refusedAddress } from './failure.ts';
import type { Lookup } from './names.ts';
import { readOnAfterFailure } from './write-failure.ts';

/**
 * Makes undici's way to a connection: to no address that was not vetted, names as they are looked
 * up for this very connection, literals as they stand. `connectTimeoutMs` bounds looking a name up,
 * connecting and TLS.
 */
export function guardedConnector({
  allowPrivate,
  connectTimeoutMs,
  ca,
  lookup,
}: {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly ca: readonly string[] | undefined;
  readonly lookup: Lookup;
}): buildConnector.connector {
  const connect = buildConnector({
    lookup: guardedLookup(lookup, allowPrivate),
    timeout: connectTimeoutMs,
    allowH2: false,
    autoSelectFamily: true,
    // Not left to NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: [...ca] }),
  });

  return ({ servername, ...options }, callback) => {
    // Node asks `lookup` for names only.
    const problem = isIP(options.hostname) && addressProblem(options.hostname, allowPrivate);
    if (problem) {
      process.nextTick(callback, refusedAddress(problem), null);
      return;
    }
    // Without TLS, undici would take the server name, which is the Host field, for the name to
    // connect to.
    const named = options.protocol === 'https:' && servername !== undefined;
    connect(named ? { ...options, servername } : options, (...[error, socket]) => {
      if (error === null) callback(null, readOnAfterFailure(socket));
      else callback(error, null);
    });
  };
}

/**
 * Drops the addresses that may not be dialled from what a name leads to; fails when none is left.
 */
function guardedLookup(lookup: Lookup, allowPrivate: readonly Cidr[]): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (found) => {
        const problems: string[] = [];
        const allowed = found.filter(({ address }) => {
          const problem = addressProblem(address, allowPrivate);
          if (problem !== undefined) problems.push(problem);
          return problem === undefined;
        });
        const [first] = allowed;
        if (first === undefined) {
          callback(refusedAddress(`${hostname}: ${problems.join('; ')}`), []);
        } else if (options.all) {
          callback(null, [...allowed]);
        } else {
          callback(null, first.address, first.family);
        }
      },
      (error: unknown) => {
        callback(error as Error, []);
      },
    );
  };
}
