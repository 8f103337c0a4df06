import { hash } from 'node:crypto';
import type { Random } from './random.ts';
import { fieldText, jsonText } from './texts.ts';

const methods = [
  'GET',
  'GET',
  'GET',
  'HEAD',
  'POST',
  'OPTIONS',
  'PUT',
  'DELETE',
  'TRACE',
  'FOO',
] as const;
const paths = [
  '/',
  '/file.html',
  '/page.html',
  '/public',
  '/private',
  '/far/a',
  '/far/b',
  '/far/c',
  '/none',
  '/crumb',
  '/generic',
  '/loop/a',
  '/big.html',
  '/svc1/health',
  '/svc1/',
  '/svc1/userinterface.link.htm?k=crumb',
  '/svc1/userinterface/get_render?_v.path=/generic',
  '/svc1/userinterface/list',
  '/svc1/server/status',
  '/svc1/userinterface/get_content?_v.path=/far/a',
  '/svc1/metrics',
  '/svc1/openapi.json',
] as const;
const fields = [
  'Accept',
  'Accept-Encoding',
  'Accept-Language',
  'Cache-Control',
  'Connection',
  'Content-Length',
  'Content-Type',
  'Cookie',
  'Expect',
  'Forwarded',
  'If-Match',
  'If-Modified-Since',
  'If-None-Match',
  'If-Range',
  'If-Unmodified-Since',
  'Keep-Alive',
  'Origin',
  'Pragma',
  'Prefer',
  'Range',
  'Referer',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'User-Agent',
  'Via',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X_Forwarded_For',
  'Sec-CH-UA',
  'Sec-CH-UA-Platform',
  'Sec-Fetch-Mode',
  'Sec-Fetch-Site',
  'Sec-WebSocket-Key',
  'apikey',
  'Authorization',
  'X-Odd',
] as const;

/** The sender of a request: the credentials that a source may copy into a page. */
export interface Identity {
  readonly name: string;
  readonly fields: readonly string[];
}

/** A visitor with a unique name and one credential. */
export function identity(random: Random, number: number): Identity {
  const name = visitorName(number);
  const field = random.pick([
    `Cookie: session=${name}`,
    `Authorization: Basic ${name}`,
    `X-User: ${name}`,
  ]);
  return { name, fields: [field] };
}

/** The names of visitors in a text, without names that a mutation has changed. */
export function visitorNames(text: string): readonly string[] {
  return [...text.matchAll(/visitor-(\d+)-[0-9a-f]{8}-/g)]
    .filter(([name, number]) => name === visitorName(Number(number)))
    .map(([name]) => name);
}

/** The name of a visitor, with a digest that shows whether it is unchanged. */
function visitorName(number: number): string {
  return `visitor-${number}-${hash('sha256', String(number)).slice(0, 8)}-`;
}

/** A request as bytes: most are valid, with something long or unusual in them. */
export function requestBytes(random: Random, visitor: Identity): Buffer {
  const method = random.pick(methods);
  const target = random.pick(paths) + (random.chance(0.15) ? fieldText(random, 6_000) : '');
  const lines = ['Host: site.example', ...visitor.fields];
  for (let count = random.below(6); count > 0; count -= 1) {
    lines.splice(
      random.below(lines.length + 1),
      0,
      `${random.pick(fields)}: ${fieldText(random, 7_000)}`,
    );
  }
  if (random.chance(0.3))
    lines.push(
      `${random.pick(['Accept', 'Accept-Language', 'Origin'])}: ${random.pick(['text/html', '*/*', 'de, en', 'en, de', 'https://a.example'])}`,
    );
  let body = '';
  if (method === 'POST' || method === 'PUT') {
    body = random.chance(0.7) ? jsonText(random) : fieldText(random, 30_000);
    lines.push(...framing(random, Buffer.byteLength(body, 'latin1')));
    if (random.chance(0.7)) lines.push('Content-Type: application/json');
  }
  if (random.chance(0.05)) return Buffer.from(fieldText(random, 40_000), 'latin1');
  const version = random.chance(0.97)
    ? 'HTTP/1.1'
    : random.pick(['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1']);
  const head = `${method} ${target.replaceAll(/[\r\n]/g, '')} ${version}\r\n${lines.join('\r\n')}\r\n\r\n`;
  return Buffer.from(mutated(random, head) + body, 'latin1');
}

function framing(random: Random, bytes: number): readonly string[] {
  if (random.chance(0.8)) return [`Content-Length: ${bytes}`];
  return random.pick([
    ['Transfer-Encoding: chunked'],
    [`Content-Length: ${bytes}`, `Content-Length: ${bytes}`],
    [`Content-Length: 0${bytes}`],
    [`Content-Length: ${' '.repeat(random.below(20_000))}${bytes}`],
    ['Transfer-Encoding: ' + ' '.repeat(random.below(20_000)) + 'x'],
    [`Content-Length: ${bytes + 10}`],
  ]);
}

/** The same text, sometimes with a character changed, added or left out. */
function mutated(random: Random, text: string): string {
  if (!random.chance(0.1)) return text;
  const at = random.below(text.length);
  const added = random.pick(['', '\r', '\n', ' ', '\0', '\t', ':', '\u00ff']);
  return text.slice(0, at) + added + text.slice(at + random.below(2));
}
