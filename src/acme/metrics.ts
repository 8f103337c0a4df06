import type { Metric } from '../observability/metrics.ts';

/** Orders of certificates, as metrics. */
export function renewalMetrics(
  orders: { readonly issued: number; readonly failed: number },
  hosts: readonly { readonly host: string; readonly failures: number }[],
): readonly Metric[] {
  return [
    {
      type: 'counter',
      name: 'waymark_acme_orders_total',
      help: 'Certificates that were ordered from an ACME server, by what came of it.',
      samples: Object.entries(orders).map(([outcome, value]) => ({ labels: { outcome }, value })),
    },
    {
      type: 'gauge',
      name: 'waymark_acme_failures',
      help: 'Orders of a certificate in a row that failed.',
      samples: hosts.map(({ host, failures }) => ({ labels: { host }, value: failures })),
    },
  ];
}
