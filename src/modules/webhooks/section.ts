import { cidr, ipAddress } from '../../core/config/addresses.ts';
import { type FieldsOf, list, optional, single } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { duration, wholeNumber } from '../../core/config/values.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly webhook: FieldsOf<typeof webhookKeys>;
  }
}

const webhookKeys = {
  allow_private: list(cidr, '', {
    about: 'Private networks that hooks may call.',
    example: '127.0.0.0/8',
  }),
  connect_timeout: single(duration('1ms', '10m'), '3s', {
    field: 'connectTimeoutMs',
    about: 'How long connecting to a receiver may take.',
    example: '5s',
  }),
  timeout: single(duration('1ms', '1d'), '15s', {
    field: 'timeoutMs',
    about: 'How long a receiver may take to answer.',
    example: '30s',
  }),
  concurrency: single(wholeNumber(1, 10_000), '64', {
    about: 'How many deliveries run at a time.',
    example: '128',
  }),
  retention: single(duration('1s', '3650d'), '30d', {
    field: 'retentionMs',
    about: 'How long events and their deliveries are stored.',
    example: '90d',
  }),
  retry: list(duration('1ms', '30d'), '5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h', {
    field: 'retryMs',
    about: 'The delays before each further attempt.',
    example: '10s, 1m, 10m, 1h',
  }),
  local_address: optional(ipAddress, {
    about: 'The address of this machine that deliveries come from, which receivers may check.',
    example: '192.0.2.7',
    since: '0.2',
  }),
};

/** `[webhook]`: how hooks are delivered. */
export const webhookSection = iniSection({
  header: 'webhook',
  keys: webhookKeys,
  place: 'webhook',
  since: '0.1',
});
