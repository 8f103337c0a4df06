import { type FieldsOf, flagKey } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { packageProblems } from '../../core/config/needed-package.ts';
import { loadMcpServer } from './lazy-packages.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly mcp: FieldsOf<typeof mcpKeys>;
  }
}

const mcpKeys = {
  enabled: flagKey('yes', {
    about:
      'Whether automated tools may use the server by the [Model Context ' +
      'Protocol](../how-to/mcp.md) at `/svc1/mcp`, each with an API key.',
  }),
};

/** `[mcp]`: automated tools. */
export const mcpSection = iniSection({
  header: 'mcp',
  keys: mcpKeys,
  place: 'mcp',
  since: '0.2',
  // It is on without a line, too, and says so when a tool asks.
  read: async (mcp) =>
    mcp.values.enabled && mcp.lines.has('enabled')
      ? packageProblems(mcp, 'enabled', loadMcpServer)
      : {},
});
