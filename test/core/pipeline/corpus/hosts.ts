import { refused, type Case } from './case.ts';

const line = 'GET /far/a HTTP/1.1\r\n';
const reached = 'GET /far/a ';

function host(value: string): string {
  return `${line}Host: ${value}\r\n\r\n`;
}

const badHosts: readonly string[] = [
  '',
  '   ',
  'user@localhost',
  'user:pass@localhost',
  'localhost/a',
  'localhost?a',
  'localhost#a',
  'local host',
  'localhost, evil',
  'localhost,localhost',
  'localhost:',
  'localhost:0',
  'localhost:080',
  'localhost:99999',
  'localhost:http',
  'localhost:-80',
  'localhost:80:80',
  ':80',
  '.',
  'a..b',
  '.localhost',
  '[::1',
  '::1',
  '[::1]x',
  '[::g]',
  '127.1',
  '0x7f.0.0.1',
  '2130706433',
  '127.0.0.256',
  'local\\host',
  'local%68ost',
  'caf\xe9',
  'local\x00host',
  'local\x7fhost',
  'http://localhost',
  '"localhost"',
  '*',
  'a'.repeat(600),
];

/** The host of a request (RFC 9112 §3.2). */
export const hosts: readonly Case[] = [
  ['a name', host('localhost'), '200 kept', reached],
  ['a name in capitals', host('LOCALHOST'), '200 kept', reached],
  ['a name with a port', host('localhost:8080'), '200 kept', reached],
  ['an IPv4 address', host('127.0.0.1'), '200 kept', reached],
  ['an IPv6 address', host('[::1]:80'), '200 kept', reached],
  ['blanks around a name', host(' \tlocalhost\t '), '200 kept', reached],
  ['no Host', `${line}\r\n`, refused],
  ['no Host in HTTP/1.0', 'GET /far/a HTTP/1.0\r\n\r\n', '200 closed', reached],
  ['an empty Host in HTTP/1.0', 'GET /far/a HTTP/1.0\r\nHost:\r\n\r\n', refused],
  ['two Hosts', `${line}Host: localhost\r\nHost: localhost\r\n\r\n`, refused],
  ['two Hosts that differ', `${line}Host: localhost\r\nHost: evil\r\n\r\n`, refused],
  ['two Hosts in small letters', `${line}host: localhost\r\nHOST: localhost\r\n\r\n`, refused],
  ['a second Host in HTTP/1.0', 'GET /far/a HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', refused],
  ['a blank before the colon', `${line}Host : localhost\r\n\r\n`, refused],
  ['a blank before the name', `${line} Host: localhost\r\n\r\n`, refused],
  ['a folded Host', `${line}Host:\r\n localhost\r\n\r\n`, refused],
  ['a Host folded into another field', `${line}X: y\r\n Host: localhost\r\n\r\n`, refused],
  ...badHosts.map((value): Case => [`the Host ${value.slice(0, 40)}`, host(value), refused]),
];
