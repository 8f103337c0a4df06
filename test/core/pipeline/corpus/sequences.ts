import { chunked, head, post, refused, smuggled, type Case } from './case.ts';

const ok = head('GET /far/a');
const reached = 'GET /far/a ';
const bad = head('GET /far/a#');
const websocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
] as const;

/** Several requests on a connection, and requests that change what may follow them. */
export const sequences: readonly Case[] = [
  ['two requests', ok + ok, '200 200 kept', reached, reached],
  ['a stored page, then the source', head('GET /page') + ok, '203 200 kept', reached],
  ['a request behind one that is refused', bad + ok, refused],
  ['a refusal behind a request', ok + bad + smuggled, '200 400 closed', reached],
  ['a refusal behind a stored page', head('GET /page') + bad + smuggled, '203 400 closed'],
  ['noise behind a request', `${ok}noise\r\n\r\n${smuggled}`, '200 400 closed', reached],
  ['noise behind a stored page', `${head('GET /page')}noise\r\n\r\n`, '203 400 closed'],
  ['a bare LF behind a request', `${ok}\n${smuggled}`, '200 400 closed', reached],
  [
    'two Hosts behind a request',
    ok + head('GET /far/b', 'Host: a') + smuggled,
    '200 400 closed',
    reached,
  ],
  [
    'content that is too long',
    `${post('Content-Length: 3')}abcd`,
    '200 501 closed',
    'POST /far/a abc',
  ],
  [
    'a request behind content',
    `${post('Content-Length: 3')}abc${ok}`,
    '200 200 kept',
    'POST /far/a abc',
    reached,
  ],
  [
    'a request in content',
    post(`Content-Length: ${ok.length}`) + ok,
    '200 kept',
    `POST /far/a ${ok}`,
  ],
  [
    'a request in a chunk',
    chunked(`${ok.length.toString(16)}\r\n${ok}\r\n0\r\n\r\n`),
    '200 kept',
    `POST /far/a ${ok}`,
  ],
  ['a request behind a broken chunk', `${chunked('3\r\nabcd\r\n0\r\n\r\n')}${smuggled}`, refused],
  [
    'a broken chunk behind a request',
    `${ok}${chunked('3\r\nabcd\r\n0\r\n\r\n')}${smuggled}`,
    '200 400 closed',
    reached,
  ],
  [
    'a request behind the last',
    head('GET /far/a', 'Connection: close') + smuggled,
    '200 closed',
    reached,
  ],
  [
    'noise behind the last request',
    `${head('GET /far/a', 'Connection: close')}noise\r\n\r\n`,
    '200 closed',
    reached,
  ],
  ['a stored page as the last', head('GET /page', 'Connection: close') + smuggled, '203 closed'],
  [
    'close among others',
    head('GET /far/a', 'Connection: x, Close') + smuggled,
    '200 closed',
    reached,
  ],
  [
    'close and keep-alive',
    head('GET /far/a', 'Connection: close, keep-alive'),
    '200 closed',
    reached,
  ],
  ['a Host that Connection names', head('GET /far/a', 'Connection: host'), '200 kept', reached],

  [
    '100-continue',
    `${post('Expect: 100-continue', 'Content-Length: 3')}abc`,
    '100 200 kept',
    'POST /far/a abc',
  ],
  [
    '100-Continue',
    `${post('Expect: 100-Continue', 'Content-Length: 3')}abc`,
    '100 200 kept',
    'POST /far/a abc',
  ],
  [
    '100-continue without content',
    head('GET /far/a', 'Expect: 100-continue'),
    '200 closed',
    reached,
  ],
  [
    '100-continue for content that nobody wants',
    `${head('GET /page', 'Expect: 100-continue', 'Content-Length: 3')}abc${smuggled}`,
    '203 closed',
  ],
  [
    '100-continue in HTTP/1.0',
    'POST /far/a HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc',
    '200 closed',
    'POST /far/a abc',
  ],
  [
    'another expectation',
    `${post('Expect: 200-ok', 'Content-Length: 3')}abc${smuggled}`,
    '417 closed',
  ],
  ['an empty expectation', `${post('Expect:', 'Content-Length: 3')}abc`, '417 closed'],
  ['two expectations', `${post('Expect: 100-continue, x', 'Content-Length: 3')}abc`, '417 closed'],
  [
    'an expectation of another site',
    post('Expect: 100-continue', 'Host: a', 'Content-Length: 3'),
    refused,
  ],

  [
    'h2c',
    head(
      'GET /far/a',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
    ) + ok,
    '200 200 kept',
    reached,
    reached,
  ],
  [
    'an upgrade to TLS',
    head('GET /far/a', 'Connection: Upgrade', 'Upgrade: TLS/1.0'),
    '200 kept',
    reached,
  ],
  [
    'an upgrade that Connection does not name',
    head('GET /far/a', 'Upgrade: websocket') + ok,
    '200 200 kept',
    reached,
    reached,
  ],
  ['a websocket where there is none', head('GET /far/a', ...websocket) + smuggled, '404 closed'],
  [
    'a websocket of two protocols',
    head('GET /far/a', ...websocket, 'Upgrade: websocket') + ok,
    '200 200 kept',
    reached,
    reached,
  ],
  [
    'a websocket with content',
    `${head('GET /svc1/ws', ...websocket, 'Content-Length: 3')}abc`,
    '400 kept',
  ],
  [
    'a websocket by POST',
    `${head('POST /svc1/ws', ...websocket, 'Content-Length: 3')}abc`,
    '405 kept',
  ],
  [
    'a websocket in HTTP/1.0',
    head('GET /svc1/ws', ...websocket).replace('1.1', '1.0'),
    '400 closed',
  ],
  [
    'a websocket without a key',
    head('GET /svc1/ws', ...websocket.slice(0, 3)) + smuggled,
    '400 closed',
  ],
  ['a websocket of two Hosts', head('GET /svc1/ws', ...websocket, 'Host: a') + smuggled, refused],
  [
    'a websocket behind a request',
    ok + head('GET /far/a', ...websocket),
    '200 404 closed',
    reached,
  ],
  [
    'a websocket',
    `${head('GET /svc1/ws', ...websocket)}\x88\x82\x00\x00\x00\x00\x03\xe8${smuggled}`,
    '101 closed',
  ],
];
