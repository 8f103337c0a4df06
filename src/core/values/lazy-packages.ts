import { createRequire } from 'node:module';

/*
 * Packages that the server needs later than at its start, or never. Loading them takes a third of
 * the time of a start, so the first call loads each. They load synchronously, because the functions
 * that call them return no promises. packaging/bundle.ts replaces this `require`.
 */
const require = createRequire(import.meta.url);

/** ajv, which compiles JSON Schema 2020-12. */
export function loadAjv2020(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js');
}

/** diff, which finds the lines that differ between two texts. */
export function loadDiff(): typeof import('diff') {
  return require('diff') as typeof import('diff');
}

/** The parts of jose that verify the tokens of users. */
export function loadJose(): typeof import('jose/errors') &
  typeof import('jose/jwks/local') &
  typeof import('jose/jwt/verify') {
  return {
    ...(require('jose/errors') as typeof import('jose/errors')),
    ...(require('jose/jwks/local') as typeof import('jose/jwks/local')),
    ...(require('jose/jwt/verify') as typeof import('jose/jwt/verify')),
  };
}

/** openid-client, with which visitors sign in. */
export function loadOpenIdClient(): typeof import('openid-client') {
  return require('openid-client') as typeof import('openid-client');
}

type OtlpExporter = typeof import('@opentelemetry/exporter-trace-otlp-http');

/** The SDK of OpenTelemetry, which collects spans and sends them. */
export function loadOpenTelemetry(): typeof import('@opentelemetry/api') &
  typeof import('@opentelemetry/resources') &
  Pick<typeof import('@opentelemetry/sdk-trace'), 'BatchSpanProcessor' | 'TracerProvider'> &
  OtlpExporter {
  const sdk = require('@opentelemetry/sdk-trace') as typeof import('@opentelemetry/sdk-trace');
  const { BatchSpanProcessor, TracerProvider } = sdk;
  return {
    ...(require('@opentelemetry/api') as typeof import('@opentelemetry/api')),
    ...(require('@opentelemetry/resources') as typeof import('@opentelemetry/resources')),
    ...(require('@opentelemetry/exporter-trace-otlp-http') as OtlpExporter),
    ...{ BatchSpanProcessor, TracerProvider },
  };
}

/** ws, which reads and writes the frames of websockets. */
export function loadWs(): typeof import('ws') {
  return require('ws') as typeof import('ws');
}

/** Loads what the requests of visitors may need, for a server that gets many of them at once. */
export function loadForVisitors(): void {
  loadAjv2020();
  loadWs();
}

/** The server of the Model Context Protocol's SDK, which answers automated tools. */
export function loadMcpServer(): typeof import('@modelcontextprotocol/server') {
  return require('@modelcontextprotocol/server') as typeof import('@modelcontextprotocol/server');
}

/** The client of a request for which an answer may be reused. */
export interface ReuseClient {
  readonly address: string;
  /** Its field Authorization. */
  readonly authorization: string | undefined;
  /** Its field Cookie. */
  readonly cookie: string | undefined;
  /** Whether the request came over TLS. */
  readonly isSecure: boolean;
}
