import { fieldBlock, flags, frame, uint32 } from '../raw-client.ts';
import {
  answered,
  ask,
  block,
  data,
  get,
  only,
  open,
  replaced,
  whole,
  without,
  type Case,
} from './case.ts';

const { END_STREAM, END_HEADERS } = flags;

/** Cases about requests: RFC 9113 §8, without fields with invalid characters (§8.2.1). */
export const messageCases: readonly Case[] = [
  [
    '8.1 trailers',
    'answer 400',
    [open(1, []), data(1, 'x'), frame('HEADERS', whole, 1, fieldBlock([['x-sum', '1']]))],
  ],
  [
    '8.1 trailers without an end',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1), data(1, 'x'), frame('HEADERS', END_HEADERS, 1, fieldBlock([['x-sum', '1']]))],
  ],
  [
    '8.1 trailers with a pseudo-header field',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1), data(1, 'x'), frame('HEADERS', whole, 1, fieldBlock([[':method', 'GET']]))],
  ],
  [
    '8.2 PUSH_PROMISE',
    'answer 200, GOAWAY PROTOCOL_ERROR',
    [ask(1), answered, frame('PUSH_PROMISE', END_HEADERS, 1, Buffer.concat([uint32(2), block]))],
  ],
  ['8.2.1 upper case', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['X-A', '1']])]],
  ['8.2.1 space in a name', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['x a', '1']])]],
  ['8.2.1 colon in a name', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['x:a', '1']])]],
  ['8.2.1 empty name', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['', '1']])]],
  ['8.2.1 NUL in a value', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['x-a', 'a\0b']])]],
  ['8.2.1 CR in a value', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['x-a', 'a\rb']])]],
  ['8.2.1 LF in a value', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['x-a', 'a\nb']])]],
  ['8.2.1 space around a value', 'answer 200', [ask(1, [['x-a', ' a']])]],
  [
    '8.2.1 control character in a value',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['x-a', 'a\x01b']])],
  ],
  ['8.2.2 Connection', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['connection', 'close']])]],
  ['8.2.2 Keep-Alive', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['keep-alive', '5']])]],
  [
    '8.2.2 Proxy-Connection',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['proxy-connection', 'close']])],
  ],
  [
    '8.2.2 Transfer-Encoding',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['transfer-encoding', 'chunked']])],
  ],
  ['8.2.2 Upgrade', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['upgrade', 'websocket']])]],
  ['8.2.2 TE other than trailers', 'RST_STREAM PROTOCOL_ERROR', [ask(1, [['te', 'gzip']])]],
  ['8.2.2 TE trailers', 'answer 200', [ask(1, [['te', 'trailers']])]],
  [
    '8.2.3 cookie in crumbs',
    'answer 200',
    [
      ask(1, [
        ['cookie', 'a=b'],
        ['cookie', 'c=d'],
      ]),
    ],
  ],
  [
    '8.3 unknown pseudo-header field',
    'RST_STREAM PROTOCOL_ERROR',
    [only([[':test', 'x'], ...get])],
  ],
  [
    '8.3 pseudo-header field of an answer',
    'RST_STREAM PROTOCOL_ERROR',
    [only([...get.slice(0, 3), [':status', '200']])],
  ],
  [
    '8.3 pseudo-header field behind another',
    'RST_STREAM PROTOCOL_ERROR',
    [only([...get.slice(0, 3), ['x-a', 'b'], [':authority', 'localhost']])],
  ],
  ['8.3 pseudo-header field twice', 'RST_STREAM PROTOCOL_ERROR', [only([...get, [':path', '/b']])]],
  ['8.3 :method twice', 'RST_STREAM PROTOCOL_ERROR', [only([...get, [':method', 'GET']])]],
  ['8.3 :scheme twice', 'RST_STREAM PROTOCOL_ERROR', [only([...get, [':scheme', 'https']])]],
  ['8.3.1 HEAD', 'answer 200', [only(replaced(':method', 'HEAD'))]],
  ['8.3.1 no :method', 'RST_STREAM PROTOCOL_ERROR', [only(without(':method'))]],
  ['8.3.1 no :scheme', 'RST_STREAM PROTOCOL_ERROR', [only(without(':scheme'))]],
  ['8.3.1 no :path', 'RST_STREAM PROTOCOL_ERROR', [only(without(':path'))]],
  ['8.3.1 empty :path', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':path', ''))]],
  [':path without a slash', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':path', 'a'))]],
  [
    ':path of absolute form',
    'RST_STREAM PROTOCOL_ERROR',
    [only(replaced(':path', 'https://localhost/a'))],
  ],
  [
    '8.3.1 no :authority, but Host',
    'answer 200',
    [only([...without(':authority'), ['host', 'localhost']])],
  ],
  ['8.3.1 no :authority, no Host', 'answer 400', [only(without(':authority'))]],
  ['8.3.1 :authority and the same Host', 'answer 200', [ask(1, [['host', 'localhost']])]],
  ['8.3.1 :authority and another Host', 'answer 400', [ask(1, [['host', 'evil.example']])]],
  ['8.3.1 :authority with userinfo', 'answer 400', [only(replaced(':authority', 'a@localhost'))]],
  ['8.3.1 :scheme http', 'answer 400', [only(replaced(':scheme', 'http'))]],
  ['8.3.1 :scheme other', 'answer 400', [only(replaced(':scheme', 'ftp'))]],
  [
    '8.3.1 :scheme with a host of its own',
    'RST_STREAM PROTOCOL_ERROR',
    [only(replaced(':scheme', 'https://other/a?'))],
  ],
  ['8.3.1 :scheme with a space', 'RST_STREAM PROTOCOL_ERROR', [only(replaced(':scheme', 'a b'))]],
  [
    '8.3.1 OPTIONS *',
    'answer 204',
    [
      only([
        [':method', 'OPTIONS'],
        [':scheme', 'https'],
        [':path', '*'],
        [':authority', 'localhost'],
      ]),
    ],
  ],
  [
    '8.5 CONNECT',
    'answer 405',
    [
      frame(
        'HEADERS',
        END_HEADERS,
        1,
        fieldBlock([
          [':method', 'CONNECT'],
          [':authority', 'localhost:443'],
        ]),
      ),
    ],
  ],
  [
    '8.5 CONNECT with :path',
    'RST_STREAM PROTOCOL_ERROR',
    [only([[':method', 'CONNECT'], ...get.slice(1)])],
  ],
  [
    'RFC 8441 extended CONNECT that has ended',
    'answer 400',
    [only([[':method', 'CONNECT'], [':protocol', 'websocket'], ...get.slice(1)])],
  ],
  [':method that nobody knows', 'answer 501', [only(replaced(':method', 'FOO'))]],
  [':method in lower case', 'answer 501', [only(replaced(':method', 'get'))]],
  [':method not a token', 'answer 400', [only(replaced(':method', 'G ET'))]],
  [
    '8.1.1 content shorter than announced',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1, [['content-length', '5']]), data(1, 'x', END_STREAM)],
  ],
  [
    '8.1.1 content longer than announced',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1, [['content-length', '1']]), data(1, 'xx', END_STREAM)],
  ],
  [
    '8.1.1 content over several frames',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1, [['content-length', '1']]), data(1, 'x'), data(1, 'x', END_STREAM)],
  ],
  [
    '8.1.1 Content-Length twice',
    'RST_STREAM PROTOCOL_ERROR',
    [
      ask(1, [
        ['content-length', '0'],
        ['content-length', '0'],
      ]),
    ],
  ],
  [
    '8.1.1 Content-Length not a number',
    'RST_STREAM PROTOCOL_ERROR',
    [ask(1, [['content-length', '+1']])],
  ],
];
