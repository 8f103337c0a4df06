import { once } from 'node:events';
import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { TlsSite } from '../tls/tls-rig.ts';

type Answered = IncomingHttpHeaders & IncomingHttpStatusHeader;

/** An answer over HTTP/2. */
export interface StreamReply {
  readonly status: number | undefined;
  readonly headers: Answered;
  readonly body: Buffer;
  /** Fields of interim answers before it, in order. */
  readonly informational: readonly Answered[];
}

/** A client of HTTP/2 with one connection to a site. */
export interface Http2Client {
  readonly session: ClientHttp2Session;
  readonly authority: string;
  /** Sends a request and reads the answer to its end; rejects if the stream is reset first. */
  ask(path: string, fields?: OutgoingHttpHeaders, content?: Buffer | string): Promise<StreamReply>;
  /** Sends a request and returns its stream. */
  begin(path: string, fields?: OutgoingHttpHeaders, endStream?: boolean): ClientHttp2Stream;
}

/** Connects to a site on its TLS port. */
export async function connectHttp2(t: TestContext, site: TlsSite): Promise<Http2Client> {
  const authority = `localhost:${site.tlsPort}`;
  const session = connect(`https://${authority}`, { ca: site.authority.cert });
  session.on('error', () => undefined);
  t.after(() => {
    session.destroy();
  });
  await once(session, 'connect');
  const begin = (path: string, fields: OutgoingHttpHeaders = {}, endStream = true) =>
    session.request({ ':path': path, ...fields }, { endStream });
  return {
    session,
    authority,
    begin,
    async ask(path, fields, content) {
      const stream = begin(path, fields, content === undefined);
      if (content !== undefined) stream.end(content);
      return readReply(stream);
    },
  };
}

/** Reads the response of a stream to its end; rejects if the stream is reset first. */
export async function readReply(stream: ClientHttp2Stream): Promise<StreamReply> {
  const informational: Answered[] = [];
  stream.on('headers', (headers: Answered) => informational.push(headers));
  // Node 24 drops content that nobody has begun to read when the whole answer comes at once.
  const [response, body] = await Promise.all([once(stream, 'response'), buffer(stream)]);
  const [headers] = response as [Answered];
  return { status: headers[':status'], headers, body, informational };
}
