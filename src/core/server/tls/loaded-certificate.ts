import { constants } from 'node:crypto';
import { type SecureContext, type SecureContextOptions, createSecureContext } from 'node:tls';
import type { AcmeStore } from '../../../modules/acme/acme-store.ts';
import type { CertificateState } from '../../../modules/status/server-status.ts';
import type { Certificate } from '../../config/config.ts';
import {
  type KeyPair,
  type RefusedPair,
  parseKeyPair,
  readKeyPair,
} from '../../config/key-pair.ts';
import { tlsSection } from '../../config/core-sections.ts';
import { Failure } from '../../values/failure.ts';

/** Certificates on demand that server.status shows. */
const onDemandShownMax = 100;
const onDemandSection = 'tls: acme_on_demand ';

/** A certificate of the ini file or of ACME, with the pair in use. */
export interface LoadedCertificate {
  /** Undefined for the default certificate. */
  readonly host: string | undefined;
  /** The files of the ini file; undefined for a certificate that ACME gets. */
  readonly files: Certificate | undefined;
  readonly section: string;
  /** Reads the pair as it is stored; undefined if ACME has not got one. */
  readonly read: () => Promise<ActivePair | RefusedPair | undefined>;
  /** Names the certificate in a refusal, as the subject of a sentence. */
  readonly placeOf: (refused: RefusedPair) => string;
  /** The pair in use; undefined while ACME has not got one. */
  current: ActivePair | undefined;
  problem: string | null;
}

/** A pair of certificate and key, with the TLS context made of it. */
export interface ActivePair {
  readonly pair: KeyPair;
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
}

/**
 * TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only: Mozilla's intermediate
 * list, which satisfies RFC 9113 §9.2.2. The client's preference decides, because the client knows
 * whether it has AES in hardware.
 */
export const protocolOptions: SecureContextOptions = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  honorCipherOrder: false,
  // RFC 9113 §9.2.1 forbids renegotiation; TLS 1.3 has none.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};

/**
 * Reads a certificate of the ini file for the first time. Rejects with `invalid` if it is unusable
 * and no other process has it in use.
 */
export async function loadCertificate(files: Certificate): Promise<LoadedCertificate> {
  const { host, certFile, keyFile } = files;
  const placeOf = ({ key }: RefusedPair): string => (key === 'cert' ? certFile : keyFile);
  const read = async () => toActivePair(await readKeyPair(files));
  const section = tlsSection(host);
  const found = { host, files, section, read, placeOf };
  const loaded = await read();
  if (!('refused' in loaded)) return { ...found, current: loaded, problem: null };
  const { refused } = loaded;
  const inUse = files.inUse && toActivePair(parseKeyPair(files.inUse.cert, files.inUse.key));
  if (inUse !== undefined && !('refused' in inUse)) {
    return { ...found, current: inUse, problem: `\`${loaded.key}\` ${refused}` };
  }
  throw new Failure('invalid', `The certificate of ${section}: ${placeOf(loaded)} ${refused}.`);
}

/** Reads a certificate of ACME for the first time; it is no error if there is none yet. */
export async function loadAcmeCertificate(
  host: string,
  store: Pick<AcmeStore, 'keyPair' | 'placeOf'>,
): Promise<LoadedCertificate> {
  const placeOf = (): string => store.placeOf(host);
  const read = async () => {
    const pair = await store.keyPair(host);
    return pair && toActivePair(pair);
  };
  const found = { host, files: undefined, section: tlsSection(host), read, placeOf };
  const loaded = await read();
  if (loaded === undefined) return { ...found, current: undefined, problem: null };
  if (!('refused' in loaded)) return { ...found, current: loaded, problem: null };
  return { ...found, current: undefined, problem: `${store.placeOf(host)} ${loaded.refused}` };
}

function toActivePair(pair: KeyPair | RefusedPair): ActivePair | RefusedPair {
  if ('refused' in pair) return pair;
  const options = { ...protocolOptions, cert: pair.cert, key: pair.key };
  try {
    return { pair, options, context: createSecureContext(options) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error';
    return { key: 'cert', refused: `is refused by OpenSSL: ${reason}` };
  }
}

/** Returns the names and addresses of a certificate (RFC 9525 §6.3), in its order. */
export function certificateNames(current: ActivePair | undefined): readonly string[] {
  const listed = current?.pair.certificate.subjectAltName ?? '';
  return [...listed.matchAll(/(?:^|, )(DNS|IP Address):([^,"\s]+)/g)].map(
    ([, kind = '', name = '']) => (kind !== 'DNS' && name.includes(':') ? `[${name}]` : name),
  );
}

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
