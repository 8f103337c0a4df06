import type { ProxyConfig } from '../../core/config/config.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { proxyId, type Rule } from '../rules/rule.ts';
import { durationText } from '../../core/values/units.ts';
import { iniSettings, type FetchRule } from './fetch-plan.ts';

/**
 * The rules of the `[proxy.<name>]` of an ini file: of the kind content.fetch, with the enginedata
 * that a page rule for the same application would have.
 */
export function configuredProxies(proxies: readonly ProxyConfig[]): readonly (FetchRule & Rule)[] {
  return proxies.map((proxy) => ({
    id: proxyId(proxy.name),
    origin: proxy.origin,
    path: `${proxy.path}*`,
    kind: 'content.fetch',
    enginedata: enginedataOf(proxy),
    [iniSettings]: {
      connectTimeoutMs: proxy.connectTimeoutMs,
      bodyBytesMax: proxy.bodyBytesMax,
      isCached: proxy.cache,
      proxyProtocol: proxy.proxyProtocol,
      mirror: proxy.mirror,
    },
  }));
}

function enginedataOf(proxy: ProxyConfig): JsonObject {
  const { source, methods, host, timeoutMs, requestHeaders, balance, weights, retries } = proxy;
  const pairs = requestHeaders.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name, requestHeaders[at + 1] ?? '']] : [],
  );
  return {
    as: 'application',
    source: [...source],
    host,
    ...{ balance, retries, resolve: proxy.resolve, http_version: proxy.httpVersion },
    ...(proxy.cacheCookies && { cache_cookies: true }),
    ...(proxy.health !== undefined && {
      health: proxy.health,
      health_interval: durationText(proxy.healthIntervalMs),
    }),
    ...(weights.length > 0 && { weights: [...weights] }),
    ...(!methods.includes('all') && { methods: [...methods] }),
    ...(timeoutMs !== undefined && { timeout: durationText(timeoutMs) }),
    ...(pairs.length > 0 && { request_headers: Object.fromEntries(pairs) }),
  };
}
