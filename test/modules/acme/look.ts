import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { X509Certificate } from '@peculiar/x509';

/** The response to an http-01 challenge (RFC 8555 §8.3) at a port of the loopback. */
export async function askHttp(
  port: number,
  { host, token }: { readonly host: string; readonly token: string },
): Promise<string> {
  const path = `/.well-known/acme-challenge/${token}`;
  const sent = request({ host: '127.0.0.1', port, path, headers: { host }, agent: false }).end();
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  return text(message);
}

/** The digest in the certificate for a tls-alpn-01 challenge (RFC 8737 §3), in hex. */
export async function askTls(port: number, { host }: { readonly host: string }): Promise<string> {
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername: host,
    ALPNProtocols: ['acme-tls/1'],
    rejectUnauthorized: false,
  });
  await once(socket, 'secureConnect');
  const certificate = new X509Certificate(socket.getPeerCertificate().raw);
  const isNegotiated = socket.alpnProtocol === 'acme-tls/1';
  const names = socket.getPeerCertificate().subjectaltname;
  socket.destroy();
  const extension = certificate.getExtension('1.3.6.1.5.5.7.1.31');
  if (!isNegotiated || names !== `DNS:${host}` || extension?.critical !== true) return 'nothing';
  // An OCTET STRING of 32 bytes.
  return Buffer.from(extension.value).subarray(2).toString('hex');
}
