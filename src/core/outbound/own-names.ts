import { createHash } from 'node:crypto';

/** What the names of servers of this kind in Via begin with (RFC 9110 §7.6.3). */
export const viaPrefix = 'waymark-';

/** Servers in Via that are looked up; a request with more counts as one of this server. */
const viaNamesMax = 64;

/**
 * The names of this server in Via, in the requests that it sends. A request that comes back to it
 * is no client on this machine, nor a trusted proxy, whatever connection it comes over.
 */
export interface OwnNames {
  /** For what the log says, such as webhooks: all servers with this log know it. */
  readonly ofLog: string;
  /** For what the ini file says: this server alone knows it. */
  readonly ofNode: string;
  /** Whether this server has sent a request with this Via. */
  readonly isIn: (via: string) => boolean;
}

/** `log` is the identity of the log, `node` the name of the machine; the id of a rule names it. */
export function ownNamesOf({
  log,
  node,
  isRule,
}: {
  readonly log: string;
  readonly node: string;
  readonly isRule: (id: string) => boolean;
}): OwnNames {
  const ofLog = `${viaPrefix}log-${digest(log)}`;
  const ofNode = `${viaPrefix}node-${digest(`${log} ${node}`)}`;
  const isOwn = (name: string): boolean => {
    if (name === ofLog || name === ofNode || name.startsWith(`${ofNode}-`)) return true;
    const [, id] = ruleName.exec(name) ?? [];
    return id !== undefined && isRule(id);
  };
  return {
    ofLog,
    ofNode,
    isIn(via) {
      const names = via.split(/[\s,]+/).filter((name) => name.startsWith(viaPrefix));
      return names.length > viaNamesMax || names.some(isOwn);
    },
  };
}

const ruleName = new RegExp(`^${viaPrefix}([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`);

/** Of an identity, which receivers need not know. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
