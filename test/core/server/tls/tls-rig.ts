import { once } from 'node:events';
import { request, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { createAuthority, type Authority } from '../../../certificates.ts';
import { type Cleaning } from '../../../folder.ts';
import { startSite, type TestSite } from '../../../harness.ts';

/** A site with a plain listener, `url`, and one with TLS. */
export interface TlsSite extends TestSite {
  readonly authority: Authority;
  readonly tlsPort: number;
  /** Sends a request over TLS; every host resolves to the loopback address. */
  ask(url: string, options?: RequestOptions & { readonly body?: string }): Promise<TlsAnswer>;
  /** Opens a TLS connection; rejects if the handshake fails. */
  shake(options?: ConnectionOptions): Promise<TLSSocket>;
}

/** An answer over TLS. */
export interface TlsAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** One certificate authority for all tests of a file: making it is slow. */
const shared = createAuthority();

/** Starts a site with certificates: a list of names for each section, `tls` or `tls.<host>`. */
export async function startTlsSite(
  t: Cleaning,
  given: {
    readonly certificates?: Readonly<Record<string, readonly string[]>>;
    readonly tls?: string;
    readonly server?: string;
    readonly ini?: string;
    readonly files?: Readonly<Record<string, string | Buffer>>;
    readonly rules?: readonly object[];
  } = {},
): Promise<TlsSite> {
  const authority = await shared;
  const { certificates = { tls: ['localhost', '127.0.0.1'] }, tls = '' } = given;
  const files: Record<string, string | Buffer> = { ...given.files };
  const sections = [tls === '' || 'tls' in certificates ? '' : `[tls]\n${tls}\n`];
  for (const [section, names] of Object.entries(certificates)) {
    const { cert, key } = await authority.issue(names);
    files[`tls/${section}.pem`] = cert;
    files[`tls/${section}.key`] = key;
    const more = section === 'tls' ? tls : '';
    sections.push(`[${section}]\ncert = tls/${section}.pem\nkey = tls/${section}.key\n${more}\n`);
  }
  const site = await startSite(t, {
    ...given,
    files,
    server: `listen[] = https://127.0.0.1:0\n${given.server ?? ''}`,
    ini: `${sections.join('')}${given.ini ?? ''}`,
  });
  const tlsUrl = site.waymark.addresses.find((address) => address.startsWith('https:')) ?? '';
  const tlsPort = Number(new URL(tlsUrl).port);
  const ca = authority.cert;
  return {
    ...site,
    authority,
    tlsPort,
    ask: (url, options = {}) => ask(url, { ca, port: tlsPort, ...options }),
    async shake(options = {}) {
      const socket = connect({ host: '127.0.0.1', port: tlsPort, ca, ...options });
      t.after(() => socket.destroy());
      await once(socket, 'secureConnect');
      return socket;
    },
  };
}

async function ask(
  url: string,
  { body, ...options }: RequestOptions & { readonly body?: string },
): Promise<TlsAnswer> {
  const sent = request(url, {
    lookup: (_host, _options, done) => {
      done(null, [{ address: '127.0.0.1', family: 4 }]);
    },
    agent: false,
    ...options,
  });
  sent.end(body);
  const [message] = (await once(sent, 'response')) as [
    NodeJS.ReadableStream & { statusCode: number; headers: TlsAnswer['headers'] },
  ];
  return { status: message.statusCode, headers: message.headers, body: await text(message) };
}
