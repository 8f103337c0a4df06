import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { bodySliceBytes } from '../../../src/modules/webhooks/limits.ts';
import { createSecret, parseSecret, signatureFields } from '../../../src/modules/webhooks/sign.ts';

const body = Buffer.from('{"type":"sale.completed","data":{"café":"☕","total":12.5}}');

/** The header fields by name in lower case, as Node's server has them. */
function received(fields: readonly string[]): Record<string, string> {
  const byName: Record<string, string> = {};
  for (let at = 0; at < fields.length; at += 2) {
    byName[fields[at]?.toLowerCase() ?? ''] = fields[at + 1] ?? '';
  }
  return byName;
}

function keyOf(secret: string): Buffer {
  const key = parseSecret(secret);
  assert.ok(key !== undefined, `${secret} is no secret`);
  return key;
}

async function signed(secret: string, content: Buffer = body): Promise<Record<string, string>> {
  const keys = [keyOf(secret)] as const;
  return received(await signatureFields({ id: 'msg_1', nowMs: Date.now(), body: content, keys }));
}

/** Content with one changed bit. */
function flipped(content: Buffer, bit: number): Buffer {
  const copy = Buffer.from(content);
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

suite('the signature of Standard Webhooks', () => {
  test('is that of the test vector in its documentation', async () => {
    const fields = received(
      await signatureFields({
        id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        nowMs: 1_614_265_330_000,
        body: Buffer.from('{"test": 2432232314}'),
        keys: [keyOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
      }),
    );
    assert.deepEqual(fields, {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      'x-service-hmac': fields['x-service-hmac'],
    });
  });

  test('has a timestamp that is rounded down to the second', async () => {
    const keys = [Buffer.alloc(32)] as const;
    const fields = await signatureFields({ id: 'a', nowMs: 1_999, body, keys });
    assert.equal(received(fields)['webhook-timestamp'], '1');
  });
});

const verifiers = {
  standardwebhooks: (secret: string) => new StandardWebhook(secret),
  svix: (secret: string) => new SvixWebhook(secret),
} as const;

for (const [name, verifier] of Object.entries(verifiers)) {
  suite(`the verifier of ${name}`, () => {
    const secret = createSecret(randomBytes);

    test('accepts a signed message', async () => {
      for (const content of [body, Buffer.from('""'), Buffer.from('[1]')]) {
        verifier(secret).verify(content, await signed(secret, content));
      }
    });

    test('refuses each changed bit, another secret and another id', async () => {
      const fields = await signed(secret);
      for (let bit = 0; bit < body.length * 8; bit += 1) {
        assert.throws(() => verifier(secret).verify(flipped(body, bit), fields));
      }
      const other = createSecret(randomBytes);
      assert.throws(() => verifier(other).verify(body, fields));
      assert.throws(() => verifier(secret).verify(body, { ...fields, 'webhook-id': 'msg_2' }));
    });

    test('accepts both secrets after a rotation', async () => {
      const [older, newer] = [createSecret(randomBytes), createSecret(randomBytes)];
      const keys = [keyOf(newer), keyOf(older)] as const;
      const fields = received(
        await signatureFields({ id: 'msg_1', nowMs: Date.now(), body, keys }),
      );
      assert.equal(fields['webhook-signature']?.split(' ').length, 2);
      verifier(newer).verify(body, fields);
      verifier(older).verify(body, fields);
      assert.throws(() => verifier(createSecret(randomBytes)).verify(body, fields));
    });
  });
}

suite('X-Service-HMAC', () => {
  async function openssl(key: Buffer, content: Buffer): Promise<string> {
    const hmac = ['-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key.toString('hex')}`];
    const child = spawn('openssl', ['dgst', ...hmac], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(content);
    return (await text(child.stdout)).replace(/^.*= /, '').trim();
  }

  test('is the HMAC of openssl for the bytes of the body and of the secret', async () => {
    const secret = createSecret(randomBytes);
    const sent = (await signed(secret))['x-service-hmac'];
    assert.match(sent ?? '', /^[0-9a-f]{64}$/);
    assert.equal(await openssl(keyOf(secret), body), sent);
    assert.notEqual(await openssl(keyOf(secret), flipped(body, 77)), sent);
    assert.notEqual(await openssl(keyOf(createSecret(randomBytes)), body), sent);
  });

  test('is that of the newer secret after a rotation', async () => {
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const nowMs = Date.now();
    const one = await signatureFields({ id: 'a', nowMs, body, keys: [newer] });
    const both = await signatureFields({ id: 'a', nowMs, body, keys: [newer, older] });
    assert.equal(received(both)['x-service-hmac'], received(one)['x-service-hmac']);
  });
});

test('a long body has the same signature in slices as at once', async () => {
  const secret = createSecret(randomBytes);
  const long = Buffer.from(JSON.stringify('x'.repeat(2.5 * bodySliceBytes)));
  const fields = await signed(secret, long);
  new StandardWebhook(secret).verify(long, fields);
  const once = createHmac('sha256', keyOf(secret)).update(long).digest('hex');
  assert.equal(fields['x-service-hmac'], once);
});

suite('secrets', () => {
  test('have 32 random bytes, which can be read back', () => {
    const secret = createSecret((size) => Buffer.alloc(size, 0xfb));
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(parseSecret(secret), Buffer.alloc(32, 0xfb));
    assert.notEqual(createSecret(randomBytes), createSecret(randomBytes));
  });

  const long = Buffer.alloc(64).toString('base64');
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 24],
    [`whsec_${long}`, 64],
    [`whsec_${Buffer.alloc(65).toString('base64')}`, undefined],
    [`whsec_${Buffer.alloc(23).toString('base64')}`, undefined],
    ['whsec_', undefined],
    ['', undefined],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', undefined],
    ['WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', undefined],
    [' whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', undefined],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n', undefined],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_', undefined],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS', undefined],
    [`whsec_${long.replace('==', '')}`, undefined],
  ];
  for (const [written, size] of cases) {
    test(`${JSON.stringify(written)} is ${size === undefined ? 'invalid' : `${size} bytes`}`, () => {
      assert.equal(parseSecret(written)?.length, size);
    });
  }
});
