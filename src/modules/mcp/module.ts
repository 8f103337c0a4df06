import type { Module } from '../../core/module.ts';
import { docs } from '../docs/module.ts';
import { mcpPath } from './endpoint.ts';
import { type ToolOperations, toolsOf } from './tools.ts';

/** Operations and documentation for automated tools (Model Context Protocol): `[mcp]`. */
export const mcp: Module = {
  name: 'mcp',
  needs: ['docs'],
  commands: [
    {
      name: 'mcp',
      summary: 'let an automated tool use a server, over standard input and output',
      load: async () => (await import('./command.ts')).defineMcp,
    },
  ],
  provision({ operations, sharedOf }) {
    let tools: ToolOperations | undefined;
    return { paths: { mcp: mcpPath(() => (tools ??= toolsOf(operations())), sharedOf(docs)) } };
  },
};
