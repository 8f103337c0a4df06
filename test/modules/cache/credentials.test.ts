import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startRig, type Handler } from './rig.ts';

const identityFields = ['x-user', 'x-roles', 'x-country'];
const ofApplications = ['x-api-key', 'x-auth-token'];

/** A source that names the client it answers, under some fields. */
function naming(fields: Readonly<Record<string, string>>): Handler {
  return ({ headers }, response) => {
    const names = ['apikey', 'authorization', 'cookie', ...ofApplications, ...identityFields];
    const name = names.map((one) => headers[one]).find((one) => one !== undefined);
    response.writeHead(200, { ETag: `"${String(name)}"`, ...fields }).end(`for ${String(name)}`);
  };
}

/** All fields by which a source can identify the client. */
const credentials: readonly Readonly<Record<string, string>>[] = [
  { apikey: 'sb_ann' },
  { authorization: 'Basic YW5u' },
  { cookie: 'session=ann' },
  ...ofApplications.map((name) => ({ [name]: 'ann' })),
  { 'x-user': 'ann' },
  { 'x-roles': 'editor' },
  { 'x-country': 'AT' },
];

suite('a response to a request that identifies the client (RFC 9111 §3.5)', () => {
  for (const fields of credentials) {
    const [name = ''] = Object.keys(fields);
    const options = { identityFields, enginedata: { pass: ['apikey', 'authorization', 'cookie'] } };

    test(`by ${name} is not stored`, async (t) => {
      const { ask } = await startRig(t, naming({ 'Cache-Control': 'max-age=3600' }), options);
      const own = await ask({ fields });
      assert.equal(own.text, `for ${Object.values(fields).join()}`);
      assert.match(own.field('cache-status') ?? '', /detail=credentials/);
      assert.equal((await ask()).text, 'for undefined');
    });

    for (const directive of ['public', 's-maxage=3600', 'must-revalidate']) {
      test(`by ${name} is stored if it has ${directive}`, async (t) => {
        const cacheControl = `max-age=3600, ${directive}`;
        const { ask } = await startRig(t, naming({ 'Cache-Control': cacheControl }), options);
        await ask({ fields });
        assert.equal((await ask()).cache, 'hit');
      });
    }

    test(`by ${name} is for that client alone if it varies by it`, async (t) => {
      const { ask } = await startRig(
        t,
        naming({ 'Cache-Control': 'public, max-age=3600', Vary: name }),
        options,
      );
      await ask({ fields });
      assert.equal((await ask()).text, 'for undefined');
      assert.equal((await ask({ fields: { [name]: 'bob' } })).text, 'for bob');
      assert.equal((await ask({ fields })).cache, 'hit');
    });
  }

  test('is not stored without an explicit lifetime', async (t) => {
    const modified = { 'Last-Modified': 'Fri, 02 Jan 2026 12:00:00 GMT' };
    const { ask } = await startRig(t, naming(modified), { identityFields });
    await ask({ fields: { 'x-user': 'ann' } });
    assert.equal((await ask()).text, 'for undefined');
  });

  test('is not sent to other clients that wait for it', async (t) => {
    const { ask } = await startRig(t, naming({ 'Cache-Control': 'max-age=3600' }), {
      identityFields,
    });
    const users = ['ann', 'bob', 'eve'];
    const answers = await Promise.all(users.map((user) => ask({ fields: { 'x-user': user } })));
    assert.deepEqual(
      answers.map(({ text }) => text),
      ['for ann', 'for bob', 'for eve'],
    );
  });

  test('is stored if the rule sets the field', async (t) => {
    const { ask } = await startRig(t, naming({ 'Cache-Control': 'max-age=3600' }), {
      identityFields,
      enginedata: { headers: { 'X-User': 'shop' } },
    });
    await ask({ fields: { 'x-user': 'ann' } });
    const other = await ask({ fields: { 'x-user': 'bob' } });
    assert.deepEqual([other.cache, other.text], ['hit', 'for shop']);
  });

  test('is stored if the field is empty', async (t) => {
    const { ask } = await startRig(t, naming({ 'Cache-Control': 'max-age=3600' }), {
      identityFields,
    });
    await ask({ fields: { 'x-user': '' } });
    assert.equal((await ask()).cache, 'hit');
  });
});

suite('a response that is stored for all', () => {
  const validated: Handler = ({ headers }, response, count) => {
    const isKnown = headers['if-none-match'] === '"x"';
    response.writeHead(isKnown ? 304 : 200, {
      'Cache-Control': 'max-age=10',
      ETag: '"x"',
      ...(headers['x-user'] !== undefined && { 'Set-Cookie': 'session=ann' }),
    });
    response.end(isKnown ? undefined : `answer ${count}`);
  };

  test('gets no field of a validation for one client', async (t) => {
    const { ask, pass, requests } = await startRig(t, validated, { identityFields });
    await ask();
    pass(11);
    const own = await ask({ fields: { 'x-user': 'ann' } });
    assert.deepEqual([own.text, own.field('set-cookie')], ['answer 1', 'session=ann; Path=/shop/']);
    const other = await ask();
    assert.deepEqual([other.text, other.field('set-cookie')], ['answer 1', undefined]);
    assert.deepEqual(
      requests.map((one) => one.headers['if-none-match']),
      [undefined, '"x"', '"x"'],
    );
  });

  test('stays stored when one client gets another response', async (t) => {
    const { ask, pass, requests } = await startRig(
      t,
      ({ headers, method }, response) => {
        const user = headers['x-user'];
        const tag = user === undefined ? '"x"' : '"y"';
        const isKnown = headers['if-none-match'] === tag;
        response.writeHead(isKnown ? 304 : 200, { 'Cache-Control': 'max-age=10', ETag: tag });
        response.end(isKnown || method === 'HEAD' ? undefined : `for ${String(user)}`);
      },
      { identityFields },
    );
    await ask();
    pass(11);
    const fields = { 'x-user': 'ann' };
    assert.equal((await ask({ fields })).text, 'for ann');
    await ask({ fields, method: 'HEAD' });
    assert.equal((await ask()).text, 'for undefined');
    assert.equal(requests.at(-1)?.headers['if-none-match'], '"x"');
  });
});
