import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { suite, test } from 'node:test';
import { corkForTurn, corkedBytesMax } from '../../../../src/core/server/websocket/message.ts';

/** A connection that records the chunks of each system call. */
function recordedConnection() {
  const calls: string[][] = [];
  const connection = new Duplex({
    read: () => undefined,
    writev(chunks, done) {
      calls.push(chunks.map(({ chunk }) => (chunk as Buffer).toString().slice(0, 10)));
      done();
    },
  });
  const send = (text: string): void => {
    corkForTurn(connection);
    connection.write(text);
  };
  return { calls, connection, send };
}

suite('the answers of a websocket', () => {
  test('that are ready in one turn of the event loop are sent in one call', async () => {
    const { calls, send } = recordedConnection();
    await Promise.all(['one', 'two', 'three'].map((text) => Promise.resolve(text).then(send)));
    await new Promise(setImmediate);
    assert.deepEqual(calls, [['one', 'two', 'three']]);
    await new Promise(setImmediate);
    send('four');
    await new Promise(setImmediate);
    assert.deepEqual(calls, [['one', 'two', 'three'], ['four']]);
  });

  test('do not wait for the end of the turn once they are large', () => {
    const { calls, send } = recordedConnection();
    send('x'.repeat(corkedBytesMax));
    assert.deepEqual(calls, []);
    send('next');
    assert.deepEqual(calls[0], ['x'.repeat(10)]);
  });

  test('go to a connection that has ended meanwhile without an error', async () => {
    const { connection, send } = recordedConnection();
    send('one');
    connection.destroy();
    await new Promise(setImmediate);
    assert.equal(connection.destroyed, true);
  });
});
