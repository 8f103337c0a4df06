import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { EndedStreams, http2EndedStreamsMax } from '../../../../src/core/server/h2/stream.ts';

suite('the streams that ended last', () => {
  test('are known with who reset them, the newest word first', () => {
    const ended = new EndedStreams();
    assert.equal(ended.resetBy(1), 'unknown');
    ended.add(1, 'client');
    ended.add(3, undefined);
    ended.add(1, 'server');
    assert.equal(ended.resetBy(1), 'server');
    assert.equal(ended.resetBy(3), undefined);
    assert.equal(ended.resetBy(5), 'unknown');
  });

  test('are forgotten, the oldest first', () => {
    const ended = new EndedStreams();
    for (let at = 0; at <= http2EndedStreamsMax + 1; at += 1) ended.add(2 * at + 1, 'client');
    assert.equal(ended.resetBy(3), 'unknown');
    assert.equal(ended.resetBy(5), 'client');
    assert.equal(ended.resetBy(2 * http2EndedStreamsMax + 3), 'client');
  });
});
