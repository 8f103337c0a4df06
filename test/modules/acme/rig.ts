import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { connect, type PeerCertificate } from 'node:tls';
import { freePort } from '../../free-port.ts';
import { startSite, type Answer, type TestSite } from '../../harness.ts';
import { startAcmeServer, type AcmeServer } from './server.ts';

/** The ports of a site. An ACME server has to know them before the site starts. */
export interface Ports {
  readonly http: number;
  readonly https: number;
}

/** A site with certificates from an ACME server. */
export interface ManagedSite extends TestSite {
  readonly tlsPort: number;
  /** The answer of server.status over TLS, with any certificate; by default for the admin key. */
  status(apikey?: string): Promise<Answer>;
}

/** Two free ports. */
export async function freePorts(): Promise<Ports> {
  return { http: await freePort(), https: await freePort() };
}

/** The [tls] sections for hosts and an ACME server with its certificate authority in `ca.pem`. */
export function acmeIni(directory: string, hosts: readonly string[], more = ''): string {
  return (
    `[tls]\nacme_directory = ${directory}\nacme_ca = ca.pem\n` +
    `acme_allow_private = 127.0.0.1\n${more}\n` +
    hosts.map((host) => `[tls.${host}]\nacme = yes\n`).join('')
  );
}

/** Starts a site on the two ports to which an ACME server connects. */
export async function startManagedSite(
  t: TestContext,
  {
    acme,
    ports,
    hosts = ['shop.example'],
    ways = ['http', 'https'],
    tls = '',
    ini = '',
    files = {},
  }: {
    readonly acme: { readonly directory: string; readonly ca: string };
    readonly ports: Ports;
    readonly hosts?: readonly string[];
    readonly ways?: readonly ('http' | 'https')[];
    /** More lines of [tls]. */
    readonly tls?: string;
    /** More sections. */
    readonly ini?: string;
    readonly files?: Readonly<Record<string, string>>;
  },
): Promise<ManagedSite> {
  const site = await startSite(t, {
    listen: ways.map((way) => `listen[] = ${way}://127.0.0.1:${ports[way]}\n`).join(''),
    ini: acmeIni(acme.directory, hosts, tls) + ini,
    files: { 'ca.pem': acme.ca, ...files },
    rules: [{ path: '/a', kind: 'content', content: 'a' }],
  });
  return {
    ...site,
    tlsPort: ports.https,
    status: (key = site.adminKey) => statusOf(ports.https, key),
  };
}

type SiteOptions = Omit<Parameters<typeof startManagedSite>[1], 'acme' | 'ports'>;
type AcmeOptions = Omit<Parameters<typeof startAcmeServer>[1], 'httpPort' | 'tlsPort'>;

/** Starts a site and its ACME server. */
export async function startBoth(
  t: TestContext,
  acmeOptions: AcmeOptions = {},
  siteOptions: SiteOptions = {},
): Promise<{ readonly site: ManagedSite; readonly acme: AcmeServer }> {
  const ports = await freePorts();
  const looksAt = { httpPort: ports.http, tlsPort: ports.https };
  const acme = await startAcmeServer(t, { ...looksAt, ...acmeOptions });
  return { site: await startManagedSite(t, { acme, ports, ...siteOptions }), acme };
}

/** The certificate for a host on a port. */
export async function certificateOf(port: number, servername: string): Promise<PeerCertificate> {
  const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerCertificate();
  socket.destroy();
  return certificate;
}

async function statusOf(port: number, apikey: string): Promise<Answer> {
  const sent = request({
    port,
    host: '127.0.0.1',
    servername: 'shop.example',
    path: '/svc1/server/status',
    headers: { apikey, host: 'shop.example' },
    rejectUnauthorized: false,
    agent: false,
  }).end();
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  return (await json(message)) as Answer;
}
