import { challengePath } from '../../core/pipeline/https-redirect.ts';
import type { AcmeStore } from './acme-store.ts';
import type { Reply } from '../../core/http/reply.ts';
import type { RequestTarget } from '../../core/http/request.ts';

/** The ALPN protocol of an ACME server's tls-alpn-01 challenge (RFC 8737 §3). */
export const challengeProtocol = 'acme-tls/1';

/** Makes the answer to an ACME challenge, in plain text; undefined for an unknown token. */
export function answerChallenge(
  { path }: Pick<RequestTarget, 'path'>,
  acme: AcmeStore | undefined,
): Promise<Reply | undefined> | undefined {
  if (acme === undefined || !path.startsWith(challengePath)) return undefined;
  return answerToken(path.slice(challengePath.length), acme);
}

async function answerToken(token: string, acme: AcmeStore): Promise<Reply | undefined> {
  const text = await acme.keyAuthorization(token);
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text);
  return {
    status: 200,
    fields: [
      'Content-Type',
      'text/plain; charset=utf-8',
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'no-store',
    ],
    body: { kind: 'bytes', bytes },
    source: 'acme',
  };
}
