import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { referencePages } from '../site/contents.ts';
import { commandsPage, documentedCommands } from './commands.ts';
import { iniFilePage } from './ini-file.ts';
import { metricsPage } from './metrics.ts';
import { errorsPage, operationsPage } from './operations.ts';
import { conditionsPage, enginedataPage, eventsPage, hooksPage, rulesPage } from './rules.ts';
import { schemasPage } from './schemas.ts';

/** The pages of the reference that the code's definitions make, as Markdown by `reference/<name>`. */
export async function generatedReference(): Promise<ReadonlyMap<string, string>> {
  const commands = await documentedCommands();
  const pages: Readonly<Record<(typeof referencePages)[number], string>> = {
    'page-rules': rulesPage(),
    enginedata: enginedataPage(),
    conditions: conditionsPage(),
    hooks: hooksPage(),
    events: eventsPage(),
    operations: operationsPage(commands),
    'ini-file': iniFilePage(),
    'sample-ini': await sampleIniPage(),
    commands: commandsPage(commands),
    errors: errorsPage(),
    metrics: metricsPage(),
    schemas: schemasPage(),
  };
  return new Map(Object.entries(pages).map(([name, text]) => [`reference/${name}`, text]));
}

async function sampleIniPage(): Promise<string> {
  const file = fileURLToPath(new URL('../../conf/server.ini', import.meta.url));
  const text = await readFile(file, 'utf8');
  return `# The sample ini file

The file \`conf/server.ini\` configures the demo site. The keys that are commented out show their default, or a sample.

\`\`\`ini
${text}\`\`\`
`;
}
