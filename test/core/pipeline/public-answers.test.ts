import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { createPageCompressor } from '../../../src/modules/compression/page-compressor.ts';
import { createPublicFileReplies } from '../../../src/modules/console/public-files.ts';
import { createPublicAnswers } from '../../../src/core/operations/http/public-answers.ts';

test('a response is compressed at its second request', async (t) => {
  const compressed: string[] = [];
  const begun = new EventEmitter();
  const compressor = createPageCompressor({
    compress: (bytes) => {
      compressed.push(bytes.toString().slice(0, 2));
      begun.emit('compress');
      return Promise.resolve(bytes.subarray(0, 1));
    },
  });
  t.after(() => {
    compressor.close();
  });
  const answers = createPublicAnswers(createPublicFileReplies(compressor));
  const ask = (name: string) =>
    answers.respond({ bytes: () => Buffer.from(name.repeat(2_000)), digest: name }, undefined, {
      method: 'GET',
      fields: { 'accept-encoding': 'gzip' },
    });
  const first = ask('q1');
  assert.equal(first.status, 200);
  assert.ok(first.fields.includes('Accept-Encoding'));
  for (const name of ['q2', 'q3', 'q4']) ask(name);
  const compressing = once(begun, 'compress');
  ask('q3');
  await compressing;
  assert.deepEqual(compressed, ['q3']);
});
