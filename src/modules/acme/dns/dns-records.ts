import type { AcmeConfig } from '../../../core/config/config.ts';
import { dnsHook } from './dns-hook.ts';
import type { DnsRecords } from './dns-record.ts';
import { dnsUpdate } from './dns-update.ts';

/** The way to change records that the ini file names; undefined for none. */
export function createDnsRecords({
  dnsHook: program,
  dnsServer: server,
  dnsKeyFile: keyFile,
}: Pick<AcmeConfig, 'dnsHook' | 'dnsServer' | 'dnsKeyFile'>): DnsRecords | undefined {
  if (program !== undefined) return dnsHook(program);
  return server === undefined || keyFile === undefined ? undefined : dnsUpdate({ server, keyFile });
}
