import { defaultPorts, parseOrigin, type Scheme } from '../values/network/authority.ts';
import { parseOriginPattern } from '../values/network/origin-pattern.ts';
import { parseAddress, parseCidr, type Cidr } from '../values/network/cidr.ts';
import {
  parseUnixSocket,
  parseUnixUrl,
  unixScheme,
  unixSpelling,
  type PrivatePlace,
} from '../values/network/unix-socket.ts';
import { pathBytesMax } from '../values/limits.ts';
import { encodeNonAscii, escapedPath, readPath, textOfPath } from '../values/path.ts';
import { type ValueParser, written } from './values.ts';

/** An IPv4 or IPv6 address, in its standard form. */
export const ipAddress: ValueParser<string> = (text) => {
  const value = parseAddress(text)?.toString();
  return value === undefined
    ? { refused: 'write an IP address, such as `192.0.2.7` or `2001:db8::7`' }
    : { value };
};

/** An address that the server listens on: `host:port`, with or without TLS, or `unix:/path`. */
export type ListenAddress =
  | {
      readonly kind: 'tcp';
      readonly scheme: Scheme;
      /** Empty for all interfaces. */
      readonly host: string;
      readonly port: number;
    }
  | { readonly kind: 'unix'; readonly path: string };

/** Whether TLS is spoken at an address. */
export function isTls(listen: ListenAddress): boolean {
  return listen.kind === 'tcp' && listen.scheme === 'https';
}

const hostName = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*$/i;
const endsInNumber = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i;

/**
 * Parses an address to listen on: `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; `:8080`,
 * `*:8080` or `8080` for all interfaces (an empty host). `https://` before it selects TLS; after
 * `https://` or `http://`, the port defaults to that of the scheme. The path of `unix:/path` is not
 * resolved.
 */
export const listenAddress: ValueParser<ListenAddress> = (text) => {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    return path === ''
      ? { refused: 'write a path after unix:' }
      : { value: { kind: 'unix', path } };
  }
  const [, prefix, rest = ''] = /^(?:(https?):\/\/)?(.*)$/i.exec(text) ?? [];
  const scheme = prefix?.toLowerCase() === 'https' ? 'https' : 'http';
  const [, written = '', digits = ''] = /^(?:(.*):)?(\d{1,5})$/.exec(rest) ?? [];
  const hasNoPort = prefix !== undefined && digits === '' && rest !== '';
  const host = listenHost(hasNoPort ? rest : written);
  const port = hasNoPort ? defaultPorts[scheme] : digits;
  if (host === undefined || port === '' || Number(port) > 65_535) {
    const shapes = '`127.0.0.1:8080`, `[::1]:8080`, `:8080`, `https://:443` or `unix:/path`';
    return { refused: `write ${shapes}` };
  }
  return { value: { kind: 'tcp', scheme, host, port: Number(port) } };
};

/** A network such as `10.0.0.0/8`, or a single address. */
export const cidr: ValueParser<Cidr> = (text) => {
  const value = parseCidr(text);
  return value === undefined
    ? { refused: 'write a network such as `10.0.0.0/8` or `fd00::/8`, or an address' }
    : { value };
};

/** A network or an address, or a unix socket such as `unix:/run/app.sock`. */
export const privatePlace: ValueParser<PrivatePlace> = (text) => {
  if (!text.includes(unixScheme)) return cidr(text);
  const value = parseUnixSocket(text);
  if (value !== undefined) return { value };
  const written = unixSpelling(text) ?? 'unix:/run/app.sock';
  return { refused: `write the path of a socket, as \`${written}\`` };
};

/**
 * An origin (RFC 6454 §6.2) in the canonical form that `parseRequest` uses: scheme and host in
 * lower case, an international name in its xn-- form, no final dot, no default port.
 */
export const origin: ValueParser<string> = (text) => {
  const value = parseOrigin(text);
  return value === undefined
    ? { refused: 'write an origin such as `https://www.example.com`, without a path' }
    : { value };
};

/**
 * The origin of a section: that of one site, `https://*.example.com` for all subdomains of a host,
 * or `*` for every one.
 */
export const originPattern: ValueParser<string> = (text) => {
  const value = parseOriginPattern(text);
  if (value !== undefined) return { value };
  const forms = 'such as `https://www.example.com` or `https://*.example.com`';
  return { refused: `write an origin ${forms}, without a path, or \`*\`` };
};

/**
 * A path of the site in its canonical form: it starts with `/`, and percent escapes are decoded
 * once, as `parseRequest` does. Spaces and non-ASCII characters need no escape.
 */
export const sitePath = written<string>((text) => {
  if (/[?#]/.test(text)) return { refused: 'the path has a query or a fragment' };
  const value = readPath(encodeNonAscii(text));
  if (typeof value !== 'string') return { refused: value.reason };
  if (value.includes('//')) return { refused: 'the path has an empty segment' };
  if (textOfPath(value) === undefined) {
    return { refused: 'the path has an encoded / or \\, or a byte that is not UTF-8' };
  }
  if (Buffer.byteLength(value) > pathBytesMax) {
    return { refused: `the path has more than ${pathBytesMax} bytes` };
  }
  return { value };
}, escapedPath);

/** The path of a mount, with a final `/`. */
export const mountPath = written<string>((text) => {
  if (text.endsWith('*'))
    return { refused: 'remove the *: a mount answers everything below its path' };
  const parsed = sitePath(text);
  return 'value' in parsed ? { value: parsed.value.replace(/\/?$/, '/') } : parsed;
}, escapedPath);

/** The prefix before `/svc1`, without a final `/`; empty for `/`. */
export const basePath = written<string>((text) => {
  const parsed = sitePath(text);
  return 'value' in parsed ? { value: parsed.value.replace(/\/$/, '') } : parsed;
}, escapedPath);

/** A link of a page: a path of this site, or an absolute http(s) URL; unchanged. */
export const link: ValueParser<string> = (value) => {
  const isReference = /^(?:https?:\/\/[^/\\@]+(?:\/|$)|\/(?![/\\]))[^\\\s]*$/i.test(value);
  return isReference && URL.canParse(value, 'http://localhost')
    ? { value }
    : { refused: 'write a path that starts with /, or an http or https URL' };
};

/** An absolute http(s) URL, or the name of a file; unchanged. */
export const urlOrFile: ValueParser<string> = (value) => {
  if (!value.includes('://')) return { value };
  return isUrl(value) && URL.canParse(value)
    ? { value }
    : { refused: 'write an http or https URL, or the name of a file' };
};

/** An absolute https URL; unchanged. */
export const httpsUrl: ValueParser<string> = (value) =>
  /^https:\/\/[^\s@]+$/i.test(value) && URL.canParse(value)
    ? { value }
    : { refused: 'write an https URL' };

/** The http(s) URL of a question, to whose query a parameter is added; unchanged. */
export const questionUrl: ValueParser<string> = (value) =>
  /^https?:\/\/[^\s@#\\]+$/i.test(value) && URL.canParse(value)
    ? { value }
    : {
        refused: 'write an http or https URL, such as `http://127.0.0.1:3000/may-have-certificate`',
      };

/** The http(s) URL of a server, with the path before its `/svc1`; without a final slash. */
export const serverUrl: ValueParser<string> = (value) =>
  /^https?:\/\/[^\s@?#]+$/i.test(value) && URL.canParse(value)
    ? { value: value.replace(/\/$/, '') }
    : { refused: 'write the URL of a server, such as `https://www.example.com`' };

/**
 * A server of NATS: `nats://host:port`, `tls://host:port` or `host:port`, without a user; in the
 * form `nats://host:port` or `tls://host:port`.
 */
export const natsServer: ValueParser<string> = (text) => {
  const [, scheme = 'nats', host = '', port = '4222'] =
    /^(?:(nats|tls):\/\/)?(\[[\da-f:.]+\]|[^\s:/@?#[\]]+)(?::(\d{1,5}))?\/?$/i.exec(text) ?? [];
  return listenHost(host) === undefined || host === '' || host === '*' || Number(port) > 65_535
    ? { refused: 'write the address of a NATS server, such as `nats://10.0.0.5:4222`' }
    : { value: `${scheme.toLowerCase()}://${host.toLowerCase()}:${Number(port)}` };
};

/** An email address. The check is coarse: only delivery can tell. */
export const mailAddress: ValueParser<string> = (value) =>
  /^[^\s@:,;<>"()]+@[^\s@:,;<>"()]+$/.test(value)
    ? { value }
    : { refused: 'write an address such as `admin@example.com`' };

/**
 * A server on a unix socket: `unix:/run/app.sock`, or `unix:/run/app.sock:/base/`; undefined for
 * any other kind of URL. `target` is what may stand behind the socket.
 */
export function unixUrl(
  text: string,
  target = plainTarget,
): ReturnType<ValueParser<string>> | undefined {
  if (!/^(?:https?:\/\/unix:(?!\d)|unix:)/i.test(text)) return undefined;
  if (target.test(parseUnixUrl(text)?.target ?? ' ')) return { value: text };
  const written = unixSpelling(text) ?? 'unix:/run/app.sock';
  return { refused: `write the path of a socket, as \`${written}\`` };
}

/** A path at a server, without a query or a `*`. */
const plainTarget = /^[^\s?#*\\]*$/;

/** Whether a text is a URL rather than the name of a file. */
export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/** Whether a text is the URL of a server, or its unix socket. */
export function isServer(text: string): boolean {
  return isUrl(text) || text.startsWith(unixScheme);
}

/** A hostname for SNI (RFC 6066 §3), lower case; its first label may be `*`. */
export const serverName: ValueParser<string> = (text) => {
  const name = text.replace(/^\*\./, '');
  if (hostName.test(name) && !endsInNumber.test(name)) return { value: text.toLowerCase() };
  return { refused: 'write a hostname such as [tls.www.example.com] or [tls.*.example.com]' };
};

function listenHost(written: string): string | undefined {
  if (written === '' || written === '*') return '';
  if (written.startsWith('[') && written.endsWith(']')) {
    const address = written.slice(1, -1);
    return address.includes(':') && parseAddress(address) ? address.toLowerCase() : undefined;
  }
  if (endsInNumber.test(written)) return parseAddress(written) ? written : undefined;
  return hostName.test(written) ? written.toLowerCase() : undefined;
}

/** An address to listen on as text, which listenAddress parses to the same value. */
export function listenText(listen: ListenAddress): string {
  if (listen.kind === 'unix') return `unix:${listen.path}`;
  const { scheme, host, port } = listen;
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return scheme === 'https' ? `https://${address}` : address;
}

/** A name server: a host and a port. */
export interface NameServer {
  readonly host: string;
  readonly port: number;
}

/** A name server, by default on port 53: `192.0.2.1`, `ns.example.com:5353`, `[2001:db8::1]:53`. */
export const nameServer: ValueParser<NameServer> = (text) => {
  const [, written = '', digits = '53'] =
    /^(\[[\da-f:.]{2,45}\]|[\w.-]{1,253})(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = Number(digits);
  if (written === '' || port < 1 || port > 65_535) {
    return { refused: 'write a name server, such as `192.0.2.1:53` or `ns.example.com`' };
  }
  return { value: { host: written.replace(/[[\]]/g, '').toLowerCase(), port } };
};

/** A name server as text, which nameServer parses to the same value. */
export function nameServerText({ host, port }: NameServer): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
