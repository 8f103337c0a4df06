#!/usr/bin/env node
// Starts the command line: from the sources in a clone, from the built files in the published package.
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';

const engineMajor = 24;
if (Number(process.versions.node.split('.')[0]) < engineMajor) {
  process.stderr.write(
    `waymark needs Node ${engineMajor} or newer, and this is ${process.versions.node}.\n` +
      'In a clone, npm brings a newer one along: npm run waymark -- <command>\n',
  );
  process.exit(1);
}

enableCompileCache();
const sources = new URL('../src/cli/cli.ts', import.meta.url);
const { run } = await import(
  existsSync(sources) ? sources.href : new URL('../dist/cli/cli.js', import.meta.url).href
);
process.exitCode = await run(process.argv.slice(2));
