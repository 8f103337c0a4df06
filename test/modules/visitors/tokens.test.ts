import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { suite, test } from 'node:test';
import { type JWK, createLocalJWKSet, exportSPKI, importJWK } from 'jose';
import {
  type TokenRules,
  createTokenVerifier,
  jwtCharactersMax,
  jwtTrustMs,
} from '../../../src/modules/visitors/tokens.ts';
import { type Claims, type Issuer, newIssuer, unsigned } from './issuer.ts';

const nowMs = Date.UTC(2026, 0, 31);
const nowSeconds = nowMs / 1_000;
const anyToken: TokenRules = {
  issuer: undefined,
  audience: undefined,
  userClaim: ['sub'],
  rolesClaim: ['roles'],
};

function tokensOf(keys: readonly JWK[], rules: Partial<TokenRules> = {}) {
  const clock = { nowMs };
  const refusals: string[] = [];
  const asked: string[] = [];
  const local = createLocalJWKSet({ keys: [...keys] });
  const tokens = createTokenVerifier({
    keys: {
      keyOf: (header, token) => {
        asked.push(header.alg);
        return local(header, token);
      },
    },
    rules: { ...anyToken, ...rules },
    now: () => clock.nowMs,
    refused: (error) => refusals.push((error as { code: string }).code),
  });
  return { tokens, clock, refusals, asked };
}

suite('a token that is valid', () => {
  const issuer = newIssuer('one');
  const cases: readonly (readonly [
    title: string,
    rules: Partial<TokenRules>,
    claims: Readonly<Record<string, unknown>>,
    user: object,
  ])[] = [
    ['names a user', {}, {}, { name: 'ann', roles: [] }],
    ['with roles', {}, { roles: ['a', '', 5, 'b'] }, { name: 'ann', roles: ['a', 'b'] }],
    ['with roles in one text', {}, { roles: 'a  b' }, { name: 'ann', roles: ['a', 'b'] }],
    ['with invalid roles', {}, { roles: { a: true } }, { name: 'ann', roles: [] }],
    [
      'with claims of other names',
      { userClaim: ['https://id.example/name'], rolesClaim: ['realm_access', 'roles'] },
      { 'https://id.example/name': 'Ann', realm_access: { roles: ['x'] } },
      { name: 'Ann', roles: ['x'] },
    ],
    [
      'from the issuer',
      { issuer: 'https://id' },
      { iss: 'https://id' },
      { name: 'ann', roles: [] },
    ],
    ['for several', { audience: 'shop' }, { aud: ['x', 'shop'] }, { name: 'ann', roles: [] }],
    [
      'from a clock that is slightly ahead',
      {},
      { nbf: nowSeconds + 20, iat: nowSeconds + 20 },
      { name: 'ann', roles: [] },
    ],
  ];
  for (const [title, rules, claims, user] of cases) {
    test(title, async () => {
      const { jwk, sign } = await issuer;
      const { tokens, refusals } = tokensOf([jwk], rules);
      assert.deepEqual(await tokens.userOf(await sign({ nowMs, claims })), user);
      assert.deepEqual(refusals, []);
    });
  }

  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    test(`by ${alg}`, async () => {
      const { jwk, sign } = await newIssuer('k', alg);
      assert.ok(await tokensOf([jwk]).tokens.userOf(await sign({ nowMs })));
    });
  }

  test('without a key id is tried with each key that matches', async () => {
    const issuers = await Promise.all([1, 2, 3].map(() => newIssuer(undefined)));
    const { tokens } = tokensOf(issuers.map(({ jwk }) => jwk));
    for (const { sign } of issuers) assert.ok(await tokens.userOf(await sign({ nowMs })));
    assert.equal(
      await tokens.userOf(await (await newIssuer(undefined)).sign({ nowMs })),
      undefined,
    );
  });

  test('is verified once, then again after a while, and never accepted after its expiry', async () => {
    const { jwk, sign } = await issuer;
    const { tokens, clock, asked } = tokensOf([jwk]);
    const token = await sign({ claims: { exp: nowSeconds + 400 } });
    await tokens.userOf(token);
    assert.deepEqual(tokens.userOf(token), { name: 'ann', roles: [] }, 'without waiting');
    assert.equal(asked.length, 1);
    clock.nowMs += jwtTrustMs;
    assert.ok(await tokens.userOf(token));
    assert.equal(asked.length, 2);
    clock.nowMs = nowMs + 400_000;
    assert.ok(await tokens.userOf(token), 'the clock of the issuer may be behind');
    clock.nowMs = nowMs + 431_000;
    assert.equal(await tokens.userOf(token), undefined);
  });
});

suite('an invalid token leaves its visitor anonymous', () => {
  const issuer = newIssuer('one');
  const cases: readonly (readonly [title: string, claims: Claims, rules?: Partial<TokenRules>])[] =
    [
      ['expired', { claims: { exp: nowSeconds - 31 } }],
      ['not yet valid', { claims: { nbf: nowSeconds + 31 } }],
      ['without an end', { claims: { exp: undefined } }],
      ['with an end that is no number', { claims: { exp: 'tomorrow' } }],
      ['of another issuer', { claims: { iss: 'https://evil' } }, { issuer: 'https://id' }],
      ['of no issuer', {}, { issuer: 'https://id' }],
      ['for another audience', { claims: { aud: 'bank' } }, { audience: 'shop' }],
      ['for no audience', {}, { audience: 'shop' }],
      ['without a name', { claims: { sub: undefined } }],
      ['with an empty name', { claims: { sub: '' } }],
      ['with a name that is no text', { claims: { sub: ['ann'] } }],
      ['with a name without end', { claims: { sub: 'a'.repeat(257) } }],
      // Where these get lost, it is the name of somebody else.
      ...['ad\0min', 'admin\r\n', ' admin', 'admin\u00a0', 'ad\u0085min', 'ad\ud800min'].map(
        (sub) => [`with the name ${JSON.stringify(sub)}`, { claims: { sub } }] as const,
      ),
      ['with a name of JavaScript', {}, { userClaim: ['constructor', 'name'] }],
      ['by a key of another name', { header: { kid: 'two' } }],
    ];
  for (const [title, claims, rules] of cases) {
    test(title, async () => {
      const { jwk, sign } = await issuer;
      const { tokens, asked } = tokensOf([jwk], rules);
      assert.equal(await tokens.userOf(await sign({ nowMs, ...claims })), undefined);
      assert.equal(asked.length, 1, 'its signature was looked at');
    });
  }

  test('with another key or signature, or with changed claims', async () => {
    const { jwk, sign } = await issuer;
    const { tokens } = tokensOf([jwk]);
    const token = await sign({ nowMs });
    const [header = '', claims = '', signature = ''] = token.split('.');
    const admin = Buffer.from(JSON.stringify({ sub: 'root', exp: nowSeconds + 9 }));
    const flipped = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1);
    const other = await (await newIssuer('one')).sign({ nowMs });
    for (const forged of [
      other,
      `${header}.${claims}.${flipped}`,
      `${header}.${claims}.`,
      `${header}.${admin.toString('base64url')}.${signature}`,
    ]) {
      assert.equal(await tokens.userOf(forged), undefined, forged);
    }
    assert.ok(await tokens.userOf(token));
  });

  test('without a signature, or with a symmetric one', async () => {
    const { jwk } = await issuer;
    const secret = { kty: 'oct', k: Buffer.from('secret').toString('base64url'), kid: 'one' };
    const { tokens } = tokensOf([jwk, secret]);
    const claims = { sub: 'root', exp: nowSeconds + 60 };
    const pem = await exportSPKI((await importJWK(jwk, 'ES256')) as Issuer['privateKey']);
    const byHmac = (key: string): string => {
      const token = unsigned({ alg: 'HS256', kid: 'one' }, claims);
      const signed = createHmac('sha256', key).update(token.slice(0, -1)).digest('base64url');
      return token + signed;
    };
    for (const forged of [
      unsigned({ alg: 'none' }, claims),
      unsigned({ alg: 'None', kid: 'one' }, claims),
      unsigned({ alg: 'NONE', kid: 'one' }, claims, 'AAAA'),
      unsigned({ kid: 'one' }, claims, 'AAAA'),
      unsigned({ alg: 'ES256', jwk }, claims, 'AAAA'),
      unsigned({ alg: 'ES256', jku: 'https://evil.example/keys' }, claims, 'AAAA'),
      byHmac('secret'),
      byHmac(pem),
    ]) {
      assert.equal(await tokens.userOf(forged), undefined, forged);
    }
  });

  test('that is not a JWT, or never expires', async () => {
    const { jwk, sign } = await issuer;
    const { tokens, asked } = tokensOf([jwk]);
    const large = await sign({ nowMs, claims: { more: 'x'.repeat(jwtCharactersMax) } });
    for (const text of [
      '',
      '.',
      '..',
      '...',
      'a.b.c',
      '{}',
      '\ud800',
      'x'.repeat(100_000),
      large,
    ]) {
      assert.equal(await tokens.userOf(text), undefined);
    }
    assert.deepEqual(asked, []);
  });
});
