import type { Listen } from '../config/addresses.ts';
import { defaultPorts } from '../model/authority.ts';
import type { AcmeChallenge } from './acme-order.ts';

/**
 * The ways to show a host to be ours that the listeners allow, the most promising first: an ACME
 * server looks at ports 80 and 443.
 */
export function challengesFor(listens: readonly Listen[]): readonly AcmeChallenge[] {
  const ports = (scheme: string) =>
    listens.flatMap((one) => (one.kind === 'tcp' && one.scheme === scheme ? [one.port] : []));
  const isKnownPort = ports('http').includes(Number(defaultPorts.http));
  const isTlsFirst = !isKnownPort && ports('https').includes(Number(defaultPorts.https));
  const ways: readonly AcmeChallenge[] =
    ports('http').length === 0 ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'];
  return isTlsFirst ? ways.toReversed() : ways;
}
