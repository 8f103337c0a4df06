import type { AcmeStore } from '../../../modules/acme/acme-store.ts';
import type { CertificateState } from '../../../modules/status/server-status.ts';
import {
  type LoadedCertificate,
  certificateNames,
  loadAcmeCertificate,
} from './loaded-certificate.ts';

/** Certificates on demand that server.status shows. */
const onDemandShownMax = 100;

const onDemandSection = 'tls: acme_on_demand ';

/** The state of a certificate; `store` has that at the ACME server. */
export async function certificateState(
  { section, current, problem, files, host = '' }: Omit<LoadedCertificate, 'read' | 'placeOf'>,
  store: Pick<AcmeStore, 'state'> | undefined,
): Promise<CertificateState> {
  const certificate = current?.pair.certificate;
  const isOnDemand = section.startsWith(onDemandSection);
  return {
    section,
    names: certificate === undefined && isOnDemand ? [host] : certificateNames(current),
    issuer: certificate?.issuer.replaceAll('\n', ', ') ?? null,
    valid_from: certificate?.validFromDate.toISOString() ?? null,
    valid_until: certificate?.validToDate.toISOString() ?? null,
    problem,
    acme: files === undefined ? ((await store?.state(host)) ?? null) : null,
  };
}

/** The certificates of `acme_on_demand` that clients asked for last, as they are stored. */
export async function loadOnDemandCertificates(
  store: AcmeStore,
): Promise<readonly LoadedCertificate[]> {
  const used = [...(await store.onDemand.hosts())].toSorted((one, other) => other[1] - one[1]);
  return Promise.all(
    used.slice(0, onDemandShownMax).map(async ([host]) => ({
      ...(await loadAcmeCertificate(host, store)),
      section: `${onDemandSection}${host}`,
    })),
  );
}
