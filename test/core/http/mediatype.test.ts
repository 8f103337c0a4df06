import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import { parseMediaType, utf8Type } from '../../../src/core/http/representation/mediatype.ts';
import { anyCharacter } from '../../any-character.ts';

const types: readonly (readonly [
  text: string,
  type: string,
  parameters?: Readonly<Record<string, string>>,
])[] = [
  ['text/html', 'text/html'],
  [' Text/HTML ', 'text/html'],
  ['text/html;charset=utf-8', 'text/html', { charset: 'utf-8' }],
  ['Text/HTML;Charset="utf-8"', 'text/html', { charset: 'utf-8' }],
  ['text/html ; charset=UTF-8 ; a=b', 'text/html', { charset: 'UTF-8', a: 'b' }],
  ['text/plain; a="b; c, \\"d\\\\"', 'text/plain', { a: 'b; c, "d\\' }],
  ['text/plain; a=""', 'text/plain', { a: '' }],
  ['text/plain;', 'text/plain'],
  ['text/plain;; a=b; ;', 'text/plain', { a: 'b' }],
  ['text/plain; a=b; A=c', 'text/plain', { a: 'b' }],
  ['application/vnd.api+json', 'application/vnd.api+json'],
  ['multipart/form-data; boundary=a-b_c', 'multipart/form-data', { boundary: 'a-b_c' }],
];

const none = [
  ...['', 'text', 'text/', '/html', 'text/html/a', 'text html', 'text /html', 'text/ html'],
  ...['text/html,', 'text/html, text/plain', 'text/html charset=a', 'text/html; charset'],
  ...['text/html; charset=', 'text/html; =a', 'text/html; a = b', 'text/html; a= b'],
  ...['text/html; a="b', 'text/html; a="b"c', 'text/html; a=b c', 'text/html; a="\0"'],
  ...['text/html; a=é', 'text/html\r\nX: y', 'text/html; a="\r\n"', 'téxt/html', '<a>/b', 'a/b;"'],
];

suite('a media type', () => {
  for (const [text, type, parameters = {}] of types) {
    test(`${text} is ${type} ${JSON.stringify(parameters)}`, () => {
      const mediaType = parseMediaType(text);
      assert.ok(mediaType);
      assert.equal(mediaType.type, type);
      assert.deepEqual(Object.fromEntries(mediaType.parameters), parameters);
    });
  }

  for (const text of none) {
    test(`${JSON.stringify(text)} is not valid`, () => {
      assert.equal(parseMediaType(text), undefined);
    });
  }

  test('from any text is parsed or refused, and cannot break a header line', () => {
    const texts = fc.string({ unit: anyCharacter }).map((text) => `text/plain;${text}`);
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = parseMediaType(text);
        assert.ok(parsed === undefined || !/[\r\n\0]/.test(text));
      }),
    );
  });
});

const sentTypes: readonly (readonly [contentType: string, text: string, sent: string])[] = [
  ['text/html; charset=utf-8', 'é', 'text/html; charset=utf-8'],
  ['Text/HTML;Charset="UTF8"', 'é', 'Text/HTML;Charset="UTF8"'],
  ['text/plain', 'plain', 'text/plain'],
  ['text/plain', 'é', 'text/plain; charset=utf-8'],
  ['text/plain;', '€', 'text/plain;; charset=utf-8'],
  ['text/plain; charset=iso-8859-1', 'é', 'text/plain; charset=utf-8'],
  ['text/html; charset=utf-16le', 'plain', 'text/html; charset=utf-8'],
  ['text/a; CHARSET="x"; b="c; \\"charset=d"', 'é', 'text/a; b="c; \\"charset=d"; charset=utf-8'],
  ['application/json', 'é', 'application/json'],
  ['application/xml; charset=latin1', 'é', 'application/xml; charset=utf-8'],
  ['image/svg+xml', 'é', 'image/svg+xml'],
];

suite('text that is sent as UTF-8', () => {
  for (const [contentType, text, sent] of sentTypes) {
    test(`${text} as ${contentType} is sent as ${sent}`, () => {
      assert.equal(utf8Type(contentType, text), sent);
    });
  }
});
