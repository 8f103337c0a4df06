import { createSecureContext, type TlsOptions, type TLSSocket } from 'node:tls';
import type { AcmeFolder } from '../../acme/folder.ts';
import type { Certificates } from './certificates.ts';
import { challengeProtocol } from './challenge.ts';
import { protocol } from './held.ts';

/** Where a handshake finds its certificate, at each moment. */
interface Sources {
  readonly certificates: Pick<Certificates, 'contextFor'>;
  /** Undefined where ACME is off. */
  readonly acme: AcmeFolder | undefined;
}

/** HTTP/1.0 is what clients of it offer, some of which speak nothing else. */
const protocols = ['h2', 'http/1.1', 'http/1.0'];

/**
 * How a handshake comes to its protocol (ALPN, RFC 7301) and certificate (SNI, RFC 6066 §3). Where
 * certificates are got by ACME, a client that speaks `acme-tls/1` gets the answer to a challenge:
 * in TLS 1.3 only, in which the protocol is chosen before the certificate.
 */
export function handshake(sources: Sources): TlsOptions {
  const challenged = new WeakSet<TLSSocket>();
  return {
    // Also where no certificate is the default one, whose own would be in force.
    ...protocol,
    ALPNCallback(this: TLSSocket, { protocols: offered }) {
      if (sources.acme === undefined || !offered.includes(challengeProtocol)) {
        return protocols.find((one) => offered.includes(one));
      }
      challenged.add(this);
      return challengeProtocol;
    },
    SNICallback(this: TLSSocket, name, done) {
      if (!challenged.has(this)) {
        const context = sources.certificates.contextFor(name);
        const missing = new Error(`There is no certificate for ${name}.`);
        done(context === undefined ? missing : null, context);
        return;
      }
      challengeContext(sources.acme, name).then(
        (context) => {
          done(null, context);
        },
        (error: unknown) => {
          done(error as Error);
        },
      );
    },
  };
}

async function challengeContext(acme: AcmeFolder | undefined, host: string) {
  const pair = await acme?.challengeCertificate(host.toLowerCase());
  if (pair === undefined) throw new Error(`Nobody was asked for ${host}.`);
  return createSecureContext({ ...pair });
}
