import { AcmeFolder } from '../../modules/acme/folder.ts';
import type { CertificateState } from '../../modules/status/server-status.ts';
import type { Config } from '../../core/config/config.ts';
import { allCertificateWarnings, certificateWarnings } from '../../core/config/warnings.ts';
import {
  certificateState,
  loadOnDemandCertificates,
} from '../../core/server/tls/certificate-states.ts';
import {
  loadAcmeCertificate,
  loadCertificate,
  type LoadedCertificate,
} from '../../core/server/tls/loaded-certificate.ts';
import { table } from '../remote/client-command.ts';

/** The certificates of a server as its files have them, and what is wrong with them. */
interface KnownCertificates {
  readonly states: readonly CertificateState[];
  /** A sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Reads the certificates of the ini file, those that ACME has brought for its sections, and those
 * for the names of `acme_on_demand` that clients asked for last. Machines of a cluster share the
 * latter two, which `waymark cluster status` shows. Resolves with a warning if the data folder may
 * not be read.
 */
export async function knownCertificates(config: Config, nowMs: number): Promise<KnownCertificates> {
  const { tls, cluster, server } = config;
  const files = await Promise.all(tls.certificates.map((one) => loadCertificate(one)));
  const states = await Promise.all(files.map((one) => certificateState(one, undefined)));
  const known = { states, warnings: await allCertificateWarnings(config, nowMs) };
  if (cluster.secretsKeyFile !== undefined) return known;
  const folder = new AcmeFolder(server.data, tls.acme);
  try {
    const [own, onDemand] = await Promise.all([
      Promise.all(tls.acme.hosts.map((host) => loadAcmeCertificate(host, folder))),
      tls.acme.onDemandUrl === undefined ? [] : loadOnDemandCertificates(folder),
    ]);
    const loaded = [...own, ...onDemand];
    return {
      states: [
        ...states,
        ...(await Promise.all(loaded.map((one) => certificateState(one, folder)))),
      ],
      warnings: [...known.warnings, ...loaded.flatMap((one) => warningsOf(one, nowMs))],
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    const advice = 'Run this as the user of the server to see them.';
    const warning = `Cannot read the certificates of ACME in ${server.data}. ${advice}`;
    return { ...known, warnings: [...known.warnings, warning] };
  }
}

function warningsOf(one: LoadedCertificate, nowMs: number): readonly string[] {
  const { section, host, current, problem } = one;
  if (problem !== null) return [`The certificate of ${section}: ${problem}.`];
  if (current === undefined) return [];
  const found = certificateWarnings({ host, section }, current.pair.certificate, nowMs);
  return found.map(({ message }) => message);
}

/**
 * A table of certificates: until when they are valid, and when the server orders them again. No
 * line without certificates.
 */
export function certificateLines(states: readonly CertificateState[]): readonly string[] {
  if (states.length === 0) return [];
  const rows = states.map(({ section, valid_until: until, acme }) => [
    ...[section, until ?? '-', acme?.state ?? '-', acme?.next ?? '-'],
    acme?.error ?? '-',
  ]);
  return table(['CERTIFICATE', 'VALID UNTIL', 'STATE', 'NEXT ORDER', 'ERROR'], rows);
}
