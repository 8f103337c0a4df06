import type { AcmeConfig } from '../../core/config/config.ts';
import type { ReadValues } from '../../core/log/shared/shared-values.ts';
import { acmeServerName } from './acme-store.ts';
import { AcmeFolder } from './folder.ts';
import { readSharedAccount, readSharedPair, sharedStates } from './shared-certificates.ts';

/**
 * Writes the certificates that a data folder has from its cluster, and the account key, into files,
 * as a single machine has them. Resolves to the hosts of those that it cannot write, each with the
 * reason as the end of a sentence.
 */
export async function writeAcmeFiles(
  values: ReadValues,
  {
    data,
    acme,
    keyFile,
  }: { readonly data: string; readonly acme: AcmeConfig; readonly keyFile: string },
): Promise<readonly { readonly host: string; readonly refused: string }[]> {
  const server = acmeServerName(acme.directory);
  const folder = new AcmeFolder(data, acme);
  const states = new Map(sharedStates(values, server));
  const left: { readonly host: string; readonly refused: string }[] = [];
  await folder.prepare();
  const account = await readSharedAccount(values, { server, keyFile });
  if (account !== undefined && 'text' in account) await folder.saveAccountKey(account.text);
  for (const host of acme.hosts) {
    const pair = await readSharedPair(values, { server, host, keyFile });
    if (pair === undefined) continue;
    if ('refused' in pair) {
      left.push({ host, refused: pair.refused });
      continue;
    }
    await folder.saveCertificate(host, pair);
    const state = states.get(host);
    if (state !== undefined) await folder.saveState(host, state);
  }
  return left;
}
