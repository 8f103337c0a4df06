import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { StreamAnswer } from '../../../src/server/h2/stream-answer.ts';
import type { StreamMessage } from '../../../src/server/h2/stream-message.ts';

/** A stream that records its output. */
class NotedStream extends EventEmitter {
  readonly sent: unknown[] = [];
  headersSent = false;
  writableFinished = false;

  respond(head: object, options: object): void {
    this.headersSent = true;
    this.sent.push(head, options);
  }

  end(content?: string): void {
    if (content !== undefined) this.sent.push(content);
    this.writableFinished = true;
  }
}

// No real connection: the result would depend on the arrival of two pieces.
for (const content of ['page', undefined]) {
  const what = content === undefined ? 'without content' : 'with its whole content';
  test(`a response ${what} is sent after the socket has been read again`, async () => {
    const stream = new NotedStream();
    const message = { discardContent: () => undefined } as StreamMessage;
    const answer = new StreamAnswer(stream as unknown as ServerHttp2Stream, message, () => 0);
    answer.writeHead(200, []).end(content);
    await turn();
    // The socket is read in the next turn.
    assert.deepEqual(stream.sent, []);
    await turn();
    const head = { __proto__: null, ':status': 200 };
    const sent = content === undefined ? [head, { endStream: true }] : [head, { endStream: false }];
    assert.deepEqual(stream.sent, content === undefined ? sent : [...sent, content]);
  });
}
