/** The variables of nginx that the values of header fields in Waymark know as well. */
const inFields: Readonly<Record<string, string>> = {
  remote_addr: '${client.ip}',
  host: '${host}',
  http_host: '${host}',
  scheme: '${scheme}',
  request_method: '${method}',
  uri: '${path}',
  document_uri: '${path}',
  args: '${query}',
  query_string: '${query}',
  remote_user: '${user}',
  ssl_client_s_dn: '${client.certificate.subject}',
  ssl_client_i_dn: '${client.certificate.issuer}',
  ssl_client_serial: '${client.certificate.serial}',
};

const variable = /\$(?:\{(\w+)\}|(\w+))/g;

/** A value of a header field as a template of Waymark; undefined for an unknown variable. */
export function fieldTemplate(text: string): string | undefined {
  const unknown: string[] = [];
  const template = text.replaceAll(variable, (_, braced?: string, plain?: string) => {
    const name = braced ?? plain ?? '';
    const field = name.startsWith('http_') ? name.slice('http_'.length) : undefined;
    const known = Object.hasOwn(inFields, name) ? inFields[name] : undefined;
    if (known !== undefined) return known;
    if (field !== undefined) return `\${request.header.${field.replaceAll('_', '-')}}`;
    unknown.push(name);
    return '';
  });
  return unknown.length === 0 ? template : undefined;
}

/** The target of a redirect in the words of `[redirect.<name>]`. */
interface Target {
  readonly to: string;
  readonly query: 'keep' | 'drop';
}

/**
 * Converts the target of a `return` or `rewrite`. `scheme` stands for `$scheme`, and `server` for
 * `$server_name`; group 1 of a pattern is `{splat}` if `isCaptured`. Undefined for a variable that
 * cannot be expressed.
 */
export function redirectTarget(
  text: string,
  {
    scheme,
    server,
    isCaptured = false,
  }: {
    readonly scheme: string | undefined;
    readonly server: string | undefined;
    readonly isCaptured?: boolean;
  },
): Target | undefined {
  const { base, keeps } = withoutQuery(text);
  const unknown: string[] = /[{}]/.test(base.replaceAll(variable, '')) ? ['{'] : [];
  let query: Target['query'] = keeps ? 'keep' : 'drop';
  const known: Readonly<Record<string, string | undefined>> = {
    uri: '{path}',
    document_uri: '{path}',
    request_uri: '{path}',
    host: '{host}',
    http_host: '{host}',
    server_name: server,
    scheme,
    1: isCaptured ? '{splat}' : undefined,
  };
  const to = base.replaceAll(variable, (_, braced?: string, plain?: string) => {
    const name = braced ?? plain ?? '';
    const value = Object.hasOwn(known, name) ? known[name] : undefined;
    if (name === 'request_uri') query = 'keep';
    if (value === undefined) unknown.push(name);
    return value ?? '';
  });
  return unknown.length === 0 ? { to, query } : undefined;
}

function withoutQuery(text: string): { readonly base: string; readonly keeps: boolean } {
  const base = text.replace(/(?:\$is_args|\?)\$(?:args|query_string)$/, '');
  // A `?` at the end keeps nginx from adding the query.
  return { base: base.replace(/\?$/, ''), keeps: base !== text };
}

/** A time of nginx (`60`, `30s`, `1m`, `500ms`) in the words of Waymark. */
export function timeText(text: string): string | undefined {
  if (/^\d{1,9}$/.test(text)) return `${text}s`;
  return /^\d{1,9}(?:ms|s|m|h|d)$/.test(text) ? text : undefined;
}

const unitSeconds: Readonly<Record<string, number>> = {
  '': 1,
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  M: 2_592_000,
  y: 31_536_000,
};

/** The seconds of a time such as `30d` or `1y`; undefined for another text. */
export function secondsOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,9})([smhdwMy]?)$/.exec(text) ?? [];
  const seconds = unitSeconds[unit];
  return digits === undefined || seconds === undefined ? undefined : Number(digits) * seconds;
}

/** A size of nginx (`10m`, `1g`, `512k`, `1000`) in the words of Waymark; `0` has no limit. */
export function sizeWords(text: string): string | undefined {
  const [, digits, unit = ''] = /^(\d{1,12})([kmg]?)$/i.exec(text) ?? [];
  if (digits === undefined) return undefined;
  if (Number(digits) === 0) return '1024GiB';
  const units: Readonly<Record<string, string>> = { '': 'B', k: 'KiB', m: 'MiB', g: 'GiB' };
  return `${digits}${units[unit.toLowerCase()] ?? 'B'}`;
}
