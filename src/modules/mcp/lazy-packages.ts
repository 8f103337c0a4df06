import { createRequire } from 'node:module';

// As in core/values/lazy-packages.ts.
const require = createRequire(import.meta.url);

/** The server of the Model Context Protocol's SDK, which answers automated tools. */
export function loadMcpServer(): typeof import('@modelcontextprotocol/server') {
  return require('@modelcontextprotocol/server') as typeof import('@modelcontextprotocol/server');
}
