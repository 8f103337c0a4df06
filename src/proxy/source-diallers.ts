import type { Config } from '../config/config.ts';
import { parseCidr } from '../model/cidr.ts';
import { createDialler, type Dialler } from '../outbound/dialler.ts';
import type { IniSettings } from './fetch-plan.ts';

/** The diallers for the sources of rules. */
export interface SourceDiallers extends Pick<Dialler, 'close' | 'cut'> {
  /** The dialler for the sources of a rule, or for a server that the ini file names. */
  of(plan: { readonly ini: Pick<IniSettings, 'connectTimeoutMs'> | undefined }): Dialler;
}

/** Every address: the ini file may name those of private networks. */
const everywhere = ['0.0.0.0/0', '::/0'].flatMap((text) => parseCidr(text) ?? []);

/**
 * Creates diallers for sources. Page rules share `ofRules`, which refuses private addresses. The
 * proxies of the ini file have diallers of their own, one for each of their connect timeouts:
 * a connection that one of them has made to a private address must not serve a page rule.
 */
export function createSourceDiallers(
  ofRules: Dialler,
  fetch: Config['fetch'],
  connected: (origin: string) => () => void,
): SourceDiallers {
  const ofProxies = new Map<number, Dialler>();
  return {
    of({ ini }) {
      if (ini === undefined) return ofRules;
      const connectTimeoutMs = ini.connectTimeoutMs ?? fetch.connectTimeoutMs;
      let dialler = ofProxies.get(connectTimeoutMs);
      if (dialler === undefined) {
        dialler = createDialler({
          allowPrivate: everywhere,
          connectTimeoutMs,
          timeoutMs: fetch.timeoutMs,
          connected,
        });
        ofProxies.set(connectTimeoutMs, dialler);
      }
      return dialler;
    },
    async close() {
      await Promise.all([ofRules, ...ofProxies.values()].map((one) => one.close()));
    },
    cut() {
      for (const one of [ofRules, ...ofProxies.values()]) one.cut();
    },
  };
}
