/** Placeholders of Caddy that the values of header fields in Waymark know as well. */
const inFields: Readonly<Record<string, string>> = {
  remote_host: '${client.ip}',
  client_ip: '${client.ip}',
  tls_client_subject: '${client.certificate.subject}',
  tls_client_issuer: '${client.certificate.issuer}',
  tls_client_fingerprint: '${client.certificate.fingerprint}',
  'http.request.remote.host': '${client.ip}',
  host: '${host}',
  hostport: '${host}',
  scheme: '${scheme}',
  method: '${method}',
  path: '${path}',
  query: '${query}',
};

const placeholder = /\{([\w.-]+)\}/g;

/**
 * Replaces `{$NAME:default}` and `{env.…}` by variables of the ini file, and adds the names with
 * their defaults.
 */
export function iniVariables(text: string, names: Map<string, string>): string {
  return text.replaceAll(
    /\{(?:\$(\w{1,64})(?::([^{}]*))?|env\.(\w{1,64}))\}/g,
    (_, parsed?: string, value?: string, run?: string) => {
      const name = parsed ?? run ?? '';
      if (!names.has(name) || value !== undefined) names.set(name, value ?? '');
      return `\${${name}}`;
    },
  );
}

/** A value of a header field as a template of Waymark; undefined for an unknown placeholder. */
export function fieldTemplate(text: string): string | undefined {
  const unknown: string[] = [];
  const template = text.replaceAll(/(?<!\$)\{([\w.-]+)\}/g, (_, name: string) => {
    const header = /^(?:header|http\.request\.header)\.([\w-]+)$/.exec(name)?.[1];
    const known = Object.hasOwn(inFields, name) ? inFields[name] : undefined;
    if (known === undefined && header === undefined) unknown.push(name);
    return known ?? `\${request.header.${header ?? ''}}`;
  });
  return unknown.length === 0 ? template : undefined;
}

/** The target of a redirect in the words of `[redirect.<name>]`; undefined if it has others. */
export function redirectTarget(
  text: string,
  scheme: string,
): { readonly to: string; readonly query: 'keep' | 'drop' } | undefined {
  const keeps = /\{uri\}|\?\{query\}$/.test(text);
  const known: Readonly<Record<string, string>> = {
    uri: '{path}',
    path: '{path}',
    'http.request.uri': '{path}',
    'http.request.uri.path': '{path}',
    host: '{host}',
    hostport: '{host}',
    scheme,
  };
  const unknown: string[] = [];
  const to = text.replace(/\?\{query\}$/, '').replaceAll(placeholder, (_, name: string) => {
    if (!Object.hasOwn(known, name)) unknown.push(name);
    return known[name] ?? '';
  });
  return unknown.length === 0 ? { to, query: keeps ? 'keep' : 'drop' } : undefined;
}
