import { createHash } from 'node:crypto';

/** What the names of servers of this kind in Via begin with (RFC 9110 §7.6.3). */
export const viaPrefix = 'waymark-';

/**
 * The names of this server in Via, in the requests that it sends. A request that comes back to it
 * is no client on this machine, nor a trusted proxy, whatever connection it comes over.
 */
export interface OwnNames {
  /** For what the log says, such as page rules and webhooks: all servers with this log know it. */
  readonly ofLog: string;
  /** For what the ini file says: this server alone knows it. */
  readonly ofNode: string;
  /** Whether this server has sent a request with this Via. */
  readonly isIn: (via: string) => boolean;
}

/** The names that requests for rules begin theirs with. */
export type ViaNames = Pick<OwnNames, 'ofLog' | 'ofNode'>;

/**
 * `log` is the identity of the log, `node` the name of the machine. No visitor knows either: who
 * could make a name would hide its address.
 */
export function ownNamesOf({
  log,
  node,
}: {
  readonly log: string;
  readonly node: string;
}): OwnNames {
  const ofLog = `${viaPrefix}log-${digest(log)}`;
  const ofNode = `${viaPrefix}node-${digest(`${log} ${node}`)}`;
  const own = [ofLog, ofNode];
  const isOwn = (name: string): boolean =>
    own.some((one) => name === one || name.startsWith(`${one}-`));
  return {
    ofLog,
    ofNode,
    isIn: (via) => via.includes(viaPrefix) && via.split(/[\s,]+/).some(isOwn),
  };
}

/** Of an identity, which receivers need not know. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
