import type { Config } from '../../core/config/config.ts';
import { parseCidr } from '../../core/values/network/cidr.ts';
import { everySocket, type PrivatePlace } from '../../core/values/network/unix-socket.ts';
import { createDialler, type Dialler } from '../../core/outbound/dialler.ts';
import type { IniSettings } from './fetch-plan.ts';

/** The diallers for the sources of rules. */
export interface SourceDiallers extends Pick<Dialler, 'close' | 'cut'> {
  /** The dialler for the sources of a rule, or for a server that the ini file names. */
  of(plan: {
    readonly ini: Pick<IniSettings, 'connectTimeoutMs'> | undefined;
    readonly isHttp2?: boolean;
  }): Dialler;
}

/** Every address and socket: the ini file may name those of private networks. */
const everywhere: readonly PrivatePlace[] = [
  ...['0.0.0.0/0', '::/0'].flatMap((text) => parseCidr(text) ?? []),
  everySocket,
];

/**
 * Creates diallers for sources, one for each set of their options. Page rules have `ofRules`, or
 * one for HTTP/2 like it, which refuses private addresses. The proxies of the ini file have
 * diallers of their own: a connection that one of them has made to a private address must not serve
 * a page rule.
 */
export function createSourceDiallers(
  ofRules: Dialler,
  fetch: Config['fetch'],
  {
    connected,
    traced,
    via,
  }: {
    /** As for a dialler. */
    readonly via: string;
    readonly connected: (origin: string) => () => void;
    /** Passes traces on, if there are any. */
    readonly traced: (dialler: Dialler) => Dialler;
  },
): SourceDiallers {
  const others = new Map<string, Dialler>();
  return {
    of({ ini, isHttp2 = false }) {
      if (ini === undefined && !isHttp2) return ofRules;
      const connectTimeoutMs = ini?.connectTimeoutMs ?? fetch.connectTimeoutMs;
      const key = `${ini === undefined ? 'rules' : 'proxies'} ${connectTimeoutMs} ${isHttp2}`;
      let dialler = others.get(key);
      if (dialler === undefined) {
        const allowPrivate = ini === undefined ? fetch.allowPrivate : everywhere;
        const { timeoutMs } = fetch;
        const options = { allowPrivate, connectTimeoutMs, timeoutMs, isHttp2, connected, via };
        dialler = traced(createDialler(options));
        others.set(key, dialler);
      }
      return dialler;
    },
    async close() {
      await Promise.all([ofRules, ...others.values()].map((one) => one.close()));
    },
    cut() {
      for (const one of [ofRules, ...others.values()]) one.cut();
    },
  };
}
