import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { replyField, type Repeat, type Reply } from '../../src/http/reply.ts';
import { replyText } from '../proxy/fetch-rig.ts';
import { startRig, type Asking, type Rig } from './rig.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Asks as a client does over its connection: by the way that is known, once there is one. */
function repeatedly(rig: Rig, asked: Asking = {}): () => Promise<Reply> {
  let known: Repeat | undefined;
  return async () => {
    if (known !== undefined) return known({ signal: new AbortController().signal });
    const reply = await rig.reply(asked);
    known = reply.repeat;
    return reply;
  };
}

suite('what is fetched again for one alone', () => {
  test('is fetched once more, and then kept, when its source allows that', async (t) => {
    const rig = await startRig(t, (_, response, count) => {
      response.setHeader('Cache-Control', count < 5 ? 'no-store' : 'max-age=60');
      response.end(String(count));
    });
    const again = repeatedly(rig);
    const seen: string[] = [];
    for (let time = 1; time <= 7; time += 1) seen.push(await replyText(await again()));
    assert.deepEqual(seen, ['1', '2', '3', '4', '5', '5', '5']);
    assert.equal(rig.requests.length, 5);
    rig.pass(61);
    assert.equal(await replyText(await again()), '6');
  });

  test('is asked for with the conditions of its client, who has it already', async (t) => {
    const rig = await startRig(t, (request, response) => {
      const isKnown = request.headers['if-none-match'] === '"a"';
      response.setHeader('Cache-Control', 'no-store').setHeader('ETag', '"a"');
      response.writeHead(isKnown ? 304 : 200).end(isKnown ? undefined : 'content');
    });
    const fields = { 'cache-control': 'no-cache', 'if-none-match': '"a"' };
    const again = repeatedly(rig, { fields });
    for (let time = 1; time <= 5; time += 1) {
      const reply = await again();
      assert.deepEqual([reply.status, replyField(reply, 'etag')], [304, '"a"'], `time ${time}`);
    }
    const sent = rig.requests.map(({ headers }) => headers['if-none-match']);
    assert.deepEqual(sent, [undefined, '"a"', '"a"', '"a"', '"a"']);
  });

  test('is not held in memory until it is asked for once more', async (t) => {
    const rig = await startRig(t, (_, response) => {
      response.setHeader('Cache-Control', 'no-store').end('content');
    });
    const again = repeatedly(rig);
    const contents: WeakRef<Buffer>[] = [];
    const once = async (): Promise<void> => {
      const { body } = await again();
      assert.ok(body.kind === 'bytes');
      contents.push(new WeakRef(body.bytes));
    };
    for (let time = 1; time <= 4; time += 1) await once();
    const held = (): number => contents.filter((content) => content.deref()).length;
    for (let time = 1; time <= 20 && held() > 0; time += 1) {
      await turn();
      collectGarbage();
    }
    assert.equal(held(), 0);
    assert.equal(await replyText(await again()), 'content');
  });
});
