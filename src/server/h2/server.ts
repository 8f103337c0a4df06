import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Http2Server } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { headerBlockBytesMax, headerFieldsMax, requestLineBytesMax } from '../../http/limits.ts';
import {
  http2ConcurrentStreamsMax,
  http2CookieFieldsMax,
  http2InvalidFramesMax,
  http2RejectedStreamsMax,
  http2SessionMegabytesMax,
  http2SettingsMax,
  http2StreamWindowBytes,
} from './limits.ts';
import type { Listener } from '../listener.ts';
import { challengeProtocol } from '../tls/challenge.ts';
import type { Http2Sessions } from './sessions.ts';

/** Answers a request of any HTTP version. */
type Answer = (message: IncomingMessage, response: ServerResponse) => void;

/**
 * Offers HTTP/2 to the clients of a server by ALPN (RFC 7301); `sessions` tracks their sessions. A
 * request has the members of IncomingMessage that the server uses, so one handler answers all
 * versions.
 */
export function enableHttp2(server: Listener, sessions: Http2Sessions, answer: Answer): void {
  const http2 = createHttp2Server();
  sessions.watch(http2, (...exchange) => {
    answer(...(exchange as unknown as [IncomingMessage, ServerResponse]));
  });
  const others = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket);
    // An ACME server needs only the handshake.
    else if (socket.alpnProtocol === challengeProtocol) socket.destroy();
    else for (const serve of others) serve.call(server, socket);
  });
}

/** Makes an HTTP/2 server with the limits of docs/design/failures.md#limits. */
export function createHttp2Server(): Http2Server {
  return createServer({
    settings: {
      enablePush: false,
      maxConcurrentStreams: http2ConcurrentStreamsMax,
      maxHeaderListSize: headerBlockBytesMax + requestLineBytesMax,
      initialWindowSize: http2StreamWindowBytes,
    },
    // One field more than allowed, so that validation can refuse it.
    maxHeaderListPairs: headerFieldsMax + http2CookieFieldsMax + pseudoFields + 1,
    maxSettings: http2SettingsMax,
    maxSessionInvalidFrames: http2InvalidFramesMax,
    maxSessionRejectedStreams: http2RejectedStreamsMax,
    maxSessionMemory: http2SessionMegabytesMax,
    strictSingleValueFields: false,
  });
}

/** `:method`, `:scheme`, `:authority`, `:path`. */
const pseudoFields = 4;
