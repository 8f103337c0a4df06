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

/** Answers a request, over whatever it came. */
type Answer = (message: IncomingMessage, response: ServerResponse) => void;

/**
 * Lets the clients of a server choose HTTP/2 (RFC 7301); their sessions are kept among those given.
 * Requests are handed on as those of HTTP/1.1 are: they have all the members that are used.
 */
export function speakHttp2(server: Listener, sessions: Http2Sessions, answer: Answer): void {
  const http2 = createHttp2Server();
  sessions.watch(http2, (...exchange) => {
    answer(...(exchange as unknown as [IncomingMessage, ServerResponse]));
  });
  const others = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket);
    // The handshake was all that an ACME server wanted.
    else if (socket.alpnProtocol === challengeProtocol) socket.destroy();
    else for (const serve of others) serve.call(server, socket);
  });
}

/** A server of HTTP/2 with the limits of docs/design/failures.md#limits. */
export function createHttp2Server(): Http2Server {
  return createServer({
    settings: {
      enablePush: false,
      maxConcurrentStreams: http2ConcurrentStreamsMax,
      maxHeaderListSize: headerBlockBytesMax + requestLineBytesMax,
      initialWindowSize: http2StreamWindowBytes,
    },
    // Pseudo-header fields, and one field too many, so that validation sees it.
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
