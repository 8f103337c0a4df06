import { cidr, isUrl } from '../../core/config/addresses.ts';
import { fieldName, fieldValue } from '../../core/config/headers.ts';
import { type FieldsOf, list, optional, single } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { packageProblems } from '../../core/config/needed-package.ts';
import { type ValueParser, shortText } from '../../core/config/values.ts';
import { loadOpenTelemetry } from './lazy-packages.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** Without an endpoint, there are no traces. */
    readonly telemetry: FieldsOf<typeof telemetryKeys>;
  }
}

/** The URL of a collector: a base to which `/v1/traces` is added, unless it ends so. */
const collectorUrl: ValueParser<string> = (text) => {
  const url = isUrl(text) && /^[^\s@?#\\]+$/.test(text) ? URL.parse(text) : null;
  if (url === null) {
    return { refused: 'write the URL of a collector, such as `http://127.0.0.1:4318`' };
  }
  const path = url.pathname.replace(/\/$/, '');
  return { value: url.origin + (path.endsWith(tracesPath) ? path : path + tracesPath) };
};

const tracesPath = '/v1/traces';

/** A part of all, from 0 to 1. */
const ratio: ValueParser<number> = (text) => {
  const value = /^(?:\d(?:\.\d{1,9})?|\.\d{1,9})$/.test(text) ? Number(text) : NaN;
  return value <= 1 ? { value } : { refused: 'write a number from 0 to 1, such as `0.1`' };
};

/** Fields of requests by name. */
type Headers = Readonly<Record<string, string>>;

/** Fields in the form of OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`, percent-encoded. */
const headers: ValueParser<Headers> = (text) => {
  const pairs = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    const name = equals === -1 ? '' : pair.slice(0, equals).trim().toLowerCase();
    return [name, decoded(pair.slice(equals + 1).trim())] as const;
  });
  const isValid = pairs.every(([name, value]) => {
    return 'value' in fieldName(name) && 'value' in fieldValue(value);
  });
  if (isValid) return { value: Object.fromEntries(pairs) };
  return { refused: 'write fields as `name=value`, with commas between them' };
};

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function headersText(given: Headers | undefined): string {
  return Object.entries(given ?? {})
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join(',');
}

const defaultService = 'waymark';

/** The keys of `[telemetry]`. */
const telemetryKeys = {
  endpoint: optional(collectorUrl, {
    about:
      'The collector of OpenTelemetry that gets traces, by OTLP over HTTP as JSON; `/v1/traces` ' +
      'is added to its path. Without it, there are no traces.',
    example: 'http://127.0.0.1:4318',
  }),
  service: single(shortText(255), defaultService, {
    about: 'The name of this server in traces, `service.name`.',
    example: 'shop',
  }),
  sample: single(ratio, '1', {
    about: 'Which part of all traces is recorded, from 0 to 1, chosen at random.',
    example: '0.1',
  }),
  trust: list(cidr, '', {
    about:
      'Networks of servers in front of this one that decide which traces are recorded: the flag ' +
      '`sampled` of their `traceparent` counts in place of `sample`.',
    example: '10.0.0.0/8',
  }),
  headers: optional(headers, {
    isSecret: true,
    write: headersText,
    about:
      'Fields of the requests to the collector, such as a key, as `name=value` with commas ' +
      'between them; a value may be percent-encoded.',
    example: '"Authorization=Bearer%20e7f1b2"',
  }),
};

/** `[telemetry]`: traces. */
export const telemetrySection = iniSection({
  header: 'telemetry',
  keys: telemetryKeys,
  place: 'telemetry',
  since: '0.3',
  example: { lines: { endpoint: 'http://127.0.0.1:4318' } },
  read: async (telemetry) =>
    telemetry.values.endpoint === undefined
      ? {}
      : packageProblems(telemetry, 'endpoint', loadOpenTelemetry),
  // Keys that have no effect without a collector.
  check: ([telemetry]) => {
    if (telemetry === undefined || telemetry.values.endpoint !== undefined) return [];
    const { service, sample, trust, headers: fields } = telemetry.values;
    const changed = [
      ...(service === defaultService ? [] : ['service']),
      ...(sample === 1 ? [] : ['sample']),
      ...(trust.length === 0 ? [] : ['trust']),
      ...(fields === undefined ? [] : ['headers']),
    ];
    return changed.slice(0, 1).flatMap((key) => {
      const message = `\`${key}\` needs \`endpoint\`, too: the URL of a collector`;
      return (telemetry.lines.get(key) ?? []).map((line) => ({ line, message }));
    });
  },
});
