import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../core/values/failure.ts';
import { type DefineCommand, UsageError, writeLine } from '../command.ts';

/** `waymark module`: begins modules for `[module.<name>]`. */
export const defineModuleCommand: DefineCommand = (command, terminal) => {
  command.description('Write modules that add steps and operations to the server.');
  command
    .command('new')
    .summary('write the folder of a new module, with a test')
    .description(
      'Write a folder with a module, its lines of the ini file, and a test: `node --test NAME` ' +
        'starts a server with the module, by the command `waymark` or the one in WAYMARK.',
    )
    .argument('<name>', 'the name of the module: letters from a to z, then digits')
    .action(async (name: string) => {
      if (!/^[a-z][a-z0-9]{0,31}$/.test(name)) {
        throw new UsageError(`${name} cannot be the name of a module: write letters from a to z.`);
      }
      await writeModule(name);
      writeLine(terminal.out, `Wrote ${name}/. Its test: node --test ${name}`);
    });
};

/** Writes the files of a new module. Rejects with `conflict` if its folder is there already. */
async function writeModule(name: string): Promise<void> {
  try {
    await mkdir(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Failure('conflict', `${name} is there already. Remove it, or choose another name.`);
  }
  for (const [file, text] of Object.entries(filesOf(name))) {
    await writeFile(join(name, file), text, { flag: 'wx' });
  }
}

function filesOf(name: string): Readonly<Record<string, string>> {
  return {
    [`${name}.js`]: moduleText(name),
    'server.ini': iniText(name),
    [`${name}.test.js`]: testText(name),
  };
}

/** The text of the module: a key, a step and an operation. */
function moduleText(name: string): string {
  return `import { anyText, single } from 'waymark/module';

/** @type {import('waymark/module').Module} */
export default {
  // The keys of [module.${name}] besides \`from\`.
  keys: {
    greeting: single(anyText, 'Hello', {
      about: 'The first word of each answer.',
      example: 'Hello',
    }),
  },
  operations: [
    {
      // svc1.${name}.greet: HTTP, websocket, command line and OpenAPI have it.
      name: 'greet',
      effect: 'reads',
      summary: 'Greets somebody.',
      input: { type: 'object', properties: { whom: { type: 'string' } } },
      output: { type: 'string' },
      run: ({ whom = 'world' }, { greeting }) => \`\${greeting}, \${whom}!\`,
    },
  ],
  // Called at the start, and at each reload with the new settings.
  provision: ({ settings }) => ({
    parts: { greeting: settings.greeting },
    steps: [
      {
        name: 'page',
        at: 'source',
        about: 'It answers for /greeting.',
        handle(request, next) {
          if (new URL(request.url).pathname !== '/greeting') return next();
          const headers = { 'content-type': 'text/html; charset=utf-8' };
          return new Response(\`<h1>\${settings.greeting}</h1>\`, { headers });
        },
      },
    ],
  }),
};
`;
}

function iniText(name: string): string {
  return `; For the test. Your own ini file needs the last section only.
[server]
listen = 127.0.0.1:0
data = data

[module.${name}]
from = ./${name}.js
greeting = Hello
`;
}

function testText(name: string): string {
  return `import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';

const here = import.meta.dirname;
const [command, ...words] = (process.env.WAYMARK ?? 'waymark').split(' ');
let server;
let url;

before(async () => {
  server = spawn(command, [...words, 'serve', '--config', 'server.ini'], { cwd: here });
  server.stderr.pipe(process.stderr);
  for await (const line of createInterface(server.stdout)) {
    url = /serves (http:\\S+)/.exec(line)?.[1];
    if (url !== undefined) break;
  }
  server.stdout.resume();
});

after(async () => {
  server.kill();
  await once(server, 'close');
  await rm(\`\${here}/data\`, { recursive: true, force: true });
});

test('the operation greets', async () => {
  const reply = await fetch(\`\${url}/svc1/${name}/greet?_v.whom=you\`);
  assert.equal((await reply.json()).data, 'Hello, you!');
});

test('the step answers for a page', async () => {
  const reply = await fetch(\`\${url}/greeting\`);
  assert.equal(await reply.text(), '<h1>Hello</h1>');
});
`;
}
