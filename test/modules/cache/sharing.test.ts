import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { replyField, type Reply } from '../../../src/core/http/reply.ts';
import { seen, startRig } from './rig.ts';

const anHour = { 'Cache-Control': 'max-age=3600' };

/** A source whose responses the test sends itself. */
function held() {
  const waiting: ServerResponse[] = [];
  let wake = Promise.withResolvers<undefined>();
  return {
    handler: (_: unknown, response: ServerResponse): void => {
      waiting.push(response);
      wake.resolve(undefined);
      wake = Promise.withResolvers();
    },
    /** The next request that the source has not answered yet. */
    next: async (): Promise<ServerResponse> => {
      for (;;) {
        const response = waiting.shift();
        if (response !== undefined) return response;
        await wake.promise;
      }
    },
  };
}

function streamOf(reply: Reply) {
  if (reply.body.kind !== 'stream') assert.fail(`${reply.body.kind} is no stream`);
  return reply.body.stream;
}

suite('requests for the same URL at the same time', () => {
  test('share one request to the source', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const asking = Array.from({ length: 20 }, () => rig.ask());
    (await source.next()).writeHead(200, anHour).end('one');
    const answers = await Promise.all(asking);
    assert.deepEqual([...new Set(answers.map((answer) => answer.text))], ['one']);
    assert.equal(rig.requests.length, 1);
    const collapsed = answers.filter((one) => one.field('cache-status')?.includes('; collapsed'));
    assert.equal(collapsed.length, 19);
  });

  test('get the whole response, also if it is already arriving', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const first = rig.reply();
    const response = await source.next();
    response.writeHead(200, { ...anHour, 'Content-Length': '6' }).write('abc');
    const early = text(streamOf(await first));
    const late = streamOf(await rig.reply());
    await once(late, 'readable');
    response.end('def');
    assert.deepEqual([await early, await text(late)], ['abcdef', 'abcdef']);
    const after = await rig.ask();
    assert.deepEqual([after.text, after.cache], ['abcdef', 'hit']);
    assert.equal(rig.requests.length, 1);
  });

  test('get the Age of a response that is still arriving', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const first = rig.reply();
    const response = await source.next();
    response.writeHead(200, { ...anHour, Age: '100', ETag: '"x"' }).write('abc');
    const early = await first;
    const known = await rig.ask({ fields: { 'if-none-match': '"x"' } });
    assert.deepEqual([known.status, known.field('age')], [304, '100']);
    response.end('def');
    assert.equal(replyField(early, 'age'), '100');
    assert.equal(await text(streamOf(early)), 'abcdef');
  });

  test('get no response that was requested before an invalidation', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler, {
      enginedata: { methods: ['GET', 'POST'] },
    });
    const before = rig.ask();
    const former = await source.next();
    const posting = rig.ask({ method: 'POST' });
    (await source.next()).writeHead(200).end('posted');
    await posting;
    const after = rig.ask();
    const joining = rig.ask();
    const latter = await source.next();
    former.writeHead(200, anHour).end('before');
    latter.writeHead(200, anHour).end('after');
    const answers = await Promise.all([before, after, joining, after.then(() => rig.ask())]);
    const texts = answers.map((answer) => answer.text);
    assert.deepEqual(texts, ['before', 'after', 'after', 'after']);
    assert.equal(rig.requests.length, 3);
  });

  test('get the representation in a response to POST, unless another one may be newer', async (t) => {
    const source = held();
    const rig = await startRig(
      t,
      (request, response) => {
        if (request.method === 'POST') source.handler(request, response);
        else response.writeHead(200, anHour).end('as it is');
      },
      { enginedata: { methods: ['GET', 'POST'] } },
    );
    const made = { ...anHour, 'Content-Location': '/' };
    const former = rig.ask({ method: 'POST' });
    const formerAnswer = await source.next();
    const latter = rig.ask({ method: 'POST' });
    (await source.next()).writeHead(200, made).end('latter');
    await latter;
    assert.equal((await rig.ask()).text, 'latter');
    formerAnswer.writeHead(200, made).end('former');
    await former;
    assert.equal((await rig.ask()).text, 'as it is');
  });

  test('get the representation in a response to POST while other URLs change', async (t) => {
    const source = held();
    const rig = await startRig(
      t,
      (request, response) => {
        if (request.url === '/a') source.handler(request, response);
        else response.writeHead(200, anHour).end('as it is');
      },
      { enginedata: { methods: ['GET', 'POST'] } },
    );
    const posted = rig.ask({ method: 'POST', path: '/shop/a' });
    const answer = await source.next();
    await rig.ask({ method: 'POST', path: '/shop/b' });
    answer.writeHead(200, { ...anHour, 'Content-Location': '/a' }).end('made');
    await posted;
    assert.equal((await rig.ask({ path: '/shop/a' })).text, 'made');
  });

  test('get the response although the first client leaves', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const leaving = new AbortController();
    const first = rig.reply({ signal: leaving.signal });
    const response = await source.next();
    const second = rig.ask();
    leaving.abort();
    await assert.rejects(first, { code: 'bad_gateway' });
    response.writeHead(200, anHour).end('one');
    assert.equal((await second).text, 'one');
    assert.equal(rig.requests.length, 1);
  });

  test('do not wait for a slow reader', async (t) => {
    const content = Buffer.alloc(1_000_000, 'x');
    const rig = await startRig(t, (_, response) => {
      response.writeHead(200, anHour).end(content);
    });
    const slow = streamOf(await rig.reply());
    const fast = await rig.ask();
    assert.equal(fast.text.length, content.length);
    assert.equal((await rig.ask()).cache, 'hit');
    assert.equal((await text(slow)).length, content.length);
    assert.equal(rig.requests.length, 1);
  });

  test('abort the request to the source when the last client has left', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const leaving = new AbortController();
    const replies = [rig.reply({ signal: leaving.signal }), rig.reply({ signal: leaving.signal })];
    const response = await source.next();
    const closed = once(response, 'close');
    leaving.abort();
    for (const reply of replies) await assert.rejects(reply, { code: 'bad_gateway' });
    await closed;
  });

  test('reach the source one by one if the response is private', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const asking = Array.from({ length: 3 }, () => rig.ask());
    const answer = async (content: string): Promise<void> => {
      (await source.next()).writeHead(200, { 'Cache-Control': 'private' }).end(content);
    };
    await answer('mine');
    await answer('yours');
    await answer('theirs');
    const texts = (await Promise.all(asking)).map((one) => one.text);
    assert.deepEqual(texts.sort(), ['mine', 'theirs', 'yours']);
    // Later requests do not wait for each other.
    const [fourth, fifth] = [rig.ask(), rig.ask()];
    const [one, other] = [await source.next(), await source.next()];
    one.end('a');
    other.end('b');
    assert.deepEqual([(await fourth).text, (await fifth).text].sort(), ['a', 'b']);
  });

  test('get the response that matches their fields in Vary', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const german = rig.ask({ fields: { 'accept-language': 'de' } });
    const first = await source.next();
    const english = rig.ask({ fields: { 'accept-language': 'en' } });
    const alsoGerman = rig.ask({ fields: { 'accept-language': 'de' } });
    first.writeHead(200, { ...anHour, Vary: 'Accept-Language' }).end('hallo');
    (await source.next()).writeHead(200, { ...anHour, Vary: 'Accept-Language' }).end('hello');
    const texts = [(await german).text, (await english).text, (await alsoGerman).text];
    assert.deepEqual(texts, ['hallo', 'hello', 'hallo']);
    assert.equal(rig.requests.length, 2);
  });

  test('fail together, and the next request reaches the source', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const asking = [rig.ask(), rig.ask()];
    (await source.next()).destroy();
    for (const one of asking) await assert.rejects(one, { code: 'bad_gateway' });
    const next = rig.ask();
    (await source.next()).writeHead(200, anHour).end('there');
    assert.equal((await next).text, 'there');
  });

  test('fail when the response breaks off, and nothing is stored', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const asking = [rig.reply(), rig.reply()];
    const response = await source.next();
    response.writeHead(200, { ...anHour, 'Content-Length': '6' }).write('abc');
    const streams = (await Promise.all(asking)).map(streamOf);
    const texts = streams.map((stream) => text(stream));
    response.destroy();
    for (const one of texts) await assert.rejects(one);
    const next = rig.ask();
    (await source.next()).writeHead(200, anHour).end('whole');
    assert.equal((await next).text, 'whole');
  });

  test('share one validation of a stale response', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const tagged = { 'Cache-Control': 'max-age=10', ETag: '"x"' };
    const first = rig.ask();
    (await source.next()).writeHead(200, tagged).end('one');
    await first;
    rig.pass(11);
    const asking = Array.from({ length: 5 }, () => rig.ask());
    (await source.next()).writeHead(304, tagged).end();
    const texts = (await Promise.all(asking)).map((one) => one.text);
    assert.deepEqual([...new Set(texts)], ['one']);
    assert.equal(rig.requests.length, 2);
  });

  test('get a stale response in place of an error only if they accept it', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler);
    const first = rig.ask();
    const fields = { 'Cache-Control': 'max-age=10, stale-if-error=60' };
    (await source.next()).writeHead(200, fields).end('one');
    await first;
    rig.pass(11);
    const any = rig.ask();
    const young = rig.ask({ fields: { 'cache-control': 'max-age=5' } });
    (await source.next()).writeHead(503).end('down');
    assert.equal((await any).text, 'one');
    (await source.next()).writeHead(503).end('still down');
    assert.equal((await young).text, 'still down');
  });
});

suite('a response that is too long to be stored', () => {
  const bytesMax = 40_000;
  const content = Buffer.alloc(5_000_000, 'abcdefghijk');

  test('is sent at the pace of the client', async (t) => {
    const rig = await startRig(
      t,
      (_, response) => {
        response.writeHead(200, anHour);
        response.write(content.subarray(0, 10));
        response.end(content.subarray(10));
      },
      { bytesMax },
    );
    for (const round of [1, 2]) {
      const answer = await rig.ask();
      assert.ok(Buffer.from(answer.text, 'latin1').equals(content));
      assert.equal(rig.requests.length, round);
    }
  });

  test('does not fill the memory for a slow reader', async (t) => {
    let sent = 0;
    const rig = await startRig(
      t,
      (_, response) => {
        response.writeHead(200, anHour);
        const more = (): void => {
          while (sent < 2_000) {
            sent += 1;
            if (!response.write(content.subarray(0, 100_000)))
              return void response.once('drain', more);
          }
        };
        more();
      },
      { bytesMax },
    );
    const stream = streamOf(await rig.reply());
    await once(stream, 'readable');
    let before = -1;
    // The source stops when the sockets in between are full.
    while (before !== sent) {
      before = sent;
      await delay(50);
    }
    assert.ok(sent < 200, `${sent} of 2000 pieces are on their way`);
    stream.destroy();
  });

  test('is requested again for a client that comes too late', async (t) => {
    const source = held();
    const rig = await startRig(t, source.handler, { bytesMax });
    const early = rig.reply();
    const response = await source.next();
    response.writeHead(200, anHour).write(content.subarray(0, 50_000));
    const stream = streamOf(await early);
    let bytes = 0;
    for await (const chunk of stream) {
      bytes += (chunk as Buffer).length;
      if (bytes >= 50_000) break;
    }
    const late = rig.reply();
    const again = await source.next();
    again.writeHead(200, anHour).end('short');
    assert.equal((await seen(await late)).text, 'short');
  });
});
