import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { consistencyProblems } from '../../../src/core/config/consistency.ts';
import { parseIni } from '../../ini.ts';

/** The messages about an ini text. */
function messages(text: string): readonly string[] {
  const ini = parseIni(text, { env: {} });
  return [...ini.problems, ...consistencyProblems(ini)].map(({ message }) => message);
}

const provider = '[login]\nissuer = https://id.example/\nclient_id = www\n';

suite('[login] in the ini file', () => {
  const table: readonly (readonly [text: string, why: RegExp])[] = [
    ['[login]\nclient_id = www', /`client_id` needs `issuer`, too/],
    ['[login]\nclient_secret = www', /`client_secret` needs `issuer`, too/],
    ['[login]\nissuer = https://id.example', /`issuer` needs `client_id`, too/],
    ...['http://id.example', 'id.example', 'https://me@id.example', 'ftp://id.example'].map(
      (issuer) => [`[login]\nissuer = ${issuer}`, /write the https URL of the issuer/] as const,
    ),
    ['[login]\nissuer = https://id.example/?a=1', /write the https URL of the issuer/],
    [`${provider}client_auth = jwt`, /write `basic` or `post`/],
    [`${provider}user = a..b`, /write the name of a claim/],
    [`${provider}lifetime = 10s`, /1m/],
    [`${provider}signed_out = https://evil.example`, /./],
    [`${provider}console_scopes = admin, follow`, /`follow` is for the keys of nodes/],
    ['[access.a]\nusers = yes', /`users` needs `issuer` in \[login\], or/],
    ['[access.a]\nallow = ::1\nlogin = yes', /`login = yes` needs `users` or `roles`/],
    [`${provider}[access.a]\nallow = ::1\nlogin = yes`, /`login = yes` needs `users`/],
  ];
  for (const [text, why] of table) {
    test(text.replaceAll('\n', ' '), () => {
      const said = messages(text);
      assert.equal(said.length, 1, said.join('; '));
      assert.match(said[0] ?? '', why);
    });
  }

  for (const text of [
    provider,
    '[login]\nissuer = http://localhost:8081/realms/a\nclient_id = www',
    '[login]\nlifetime = 8h',
    `${provider}[access.a]\nusers = yes`,
    `${provider}[access.a]\nroles = staff\nlogin = no`,
    `${provider}[access.a]\nroles = staff\nlogin = yes`,
    `${provider}[access.a]\nroles = staff\nlogin = /sign-in`,
  ]) {
    test(`${text.replaceAll('\n', ' ')}is valid`, () => {
      assert.deepEqual(messages(text), []);
    });
  }
});
