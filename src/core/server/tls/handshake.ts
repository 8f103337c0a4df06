import type { Server } from 'node:net';
import { createSecureContext, type SecureContext, type TlsOptions, type TLSSocket } from 'node:tls';
import type { AcmeStore } from '../../../modules/acme/acme-store.ts';
import type { Certificates } from './certificates.ts';
import { challengeProtocol } from '../../../modules/acme/challenge.ts';
import { protocolOptions } from './loaded-certificate.ts';

/** The sources of the certificate of a handshake. */
interface Sources {
  readonly certificates: Pick<Certificates, 'handshakeContext'>;
  /** Undefined where ACME is off. */
  readonly acme: AcmeStore | undefined;
}

/** The ALPN protocols in order of preference. Some clients offer HTTP/1.0 only. */
const protocols = ['h2', 'http/1.1', 'http/1.0'];

/**
 * Returns the options that choose the protocol (ALPN, RFC 7301) and the certificate (SNI, RFC 6066
 * §3) of a handshake. With ACME, a client that offers `acme-tls/1` gets the answer to a challenge,
 * in TLS 1.3 only, where Node calls ALPNCallback before SNICallback.
 */
export function handshakeOptions(sources: Sources): TlsOptions {
  const challenged = new WeakSet<TLSSocket>();
  return {
    // `Certificates.serve` sets these again with the default certificate, if there is one.
    ...protocolOptions,
    // An access rule refuses a client without a valid certificate, with an answer that says why.
    rejectUnauthorized: false,
    ALPNCallback(this: TLSSocket, { protocols: offered }) {
      if (sources.acme === undefined || !offered.includes(challengeProtocol)) {
        return protocols.find((one) => offered.includes(one));
      }
      challenged.add(this);
      return challengeProtocol;
    },
    SNICallback(this: TLSSocket, name, done) {
      if (!challenged.has(this)) {
        const answer = (context: SecureContext | undefined): void => {
          const missing = new Error(`There is no certificate for ${name}.`);
          done(context === undefined ? missing : null, context);
        };
        const found = sources.certificates.handshakeContext(name, this);
        if (found instanceof Promise) void found.then(answer);
        else answer(found);
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

async function challengeContext(acme: AcmeStore | undefined, host: string) {
  const pair = await acme?.challengeCertificate(host.toLowerCase());
  if (pair === undefined) throw new Error(`There is no ACME challenge for ${host}.`);
  return createSecureContext({ ...pair });
}

/**
 * Gives the connections that chose HTTP/2 (ALPN, RFC 7301) to `serveHttp2`; the server keeps the
 * others.
 */
export function chooseProtocol(server: Server, serveHttp2: (socket: TLSSocket) => void): void {
  const others = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') serveHttp2(socket);
    // An ACME server needs only the handshake.
    else if (socket.alpnProtocol === challengeProtocol) socket.destroy();
    else for (const serve of others) serve.call(server, socket);
  });
}
