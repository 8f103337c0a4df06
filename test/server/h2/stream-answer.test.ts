import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { StreamAnswer } from '../../../src/server/h2/stream-answer.ts';
import type { StreamMessage } from '../../../src/server/h2/stream-message.ts';

/** A stream that notes what is sent on it. */
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

// Over a connection, it depends on how soon what a client sends in two pieces arrives.
for (const content of ['page', undefined]) {
  const what = content === undefined ? 'without content' : 'that goes out whole';
  test(`a response ${what} is sent once the socket can take more`, async () => {
    const stream = new NotedStream();
    const message = { discardContent: () => undefined } as StreamMessage;
    const answer = new StreamAnswer(stream as unknown as ServerHttp2Stream, message, () => 0);
    answer.writeHead(200, []).end(content);
    await turn();
    // What comes behind this turn is the next read.
    assert.deepEqual(stream.sent, []);
    await turn();
    const head = { __proto__: null, ':status': 200 };
    const sent = content === undefined ? [head, { endStream: true }] : [head, { endStream: false }];
    assert.deepEqual(stream.sent, content === undefined ? sent : [...sent, content]);
  });
}
