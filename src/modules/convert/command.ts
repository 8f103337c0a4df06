import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Converted, Remark } from './conversion.ts';
import { includeReader, type ReadIncluded } from './include.ts';
import { convertedBytesMax } from './limits.ts';
import { readText } from '../../core/config/files.ts';
import { Failure } from '../../core/values/failure.ts';
import { writeLine, type DefineCommand, type Terminal } from '../../cli/command.ts';
import { jsonOption } from '../../cli/options.ts';

/**
 * Converts the text of a configuration; `file` is its name, and `folder` its folder as the ini file
 * names it. Throws `invalid` with a line.
 */
type Convert = (text: string, file: string, read: ReadIncluded, folder: string) => Converted;

const formats: Readonly<
  Record<string, { readonly files: string; readonly load: () => Promise<Convert> }>
> = {
  nginx: {
    files: 'nginx.conf, or a file of conf.d or sites-enabled',
    load: async () => (await import('./nginx/convert.ts')).convertNginx,
  },
  caddy: {
    files: 'a Caddyfile',
    load: async () => (await import('./caddy/convert.ts')).convertCaddy,
  },
  apache: {
    files: 'a file with virtual hosts, or an .htaccess',
    load: async () => (await import('./apache/convert.ts')).convertApache,
  },
  netlify: {
    files: '_redirects, _headers or netlify.toml, also of Cloudflare Pages',
    load: async () => (await import('./netlify/convert.ts')).convertNetlify,
  },
};

interface ConvertOptions {
  readonly out?: string;
  readonly json: boolean;
}

/**
 * `waymark convert nginx | caddy | apache | netlify FILE`: prints an ini file and page rules, and
 * each line that could not be expressed. The exit code is 1 if there is one.
 */
export const defineConvert: DefineCommand = (command, terminal) => {
  command.description(
    'Convert a configuration of another server: print an ini file, the page rules that it needs, ' +
      'and each line that could not be expressed with what comes nearest.',
  );
  for (const [name, { files, load }] of Object.entries(formats)) {
    command
      .command(name)
      .description(`Convert ${files}.`)
      .argument('<file>', files)
      .option('--out <dir>', 'write server.ini and rules.ndjson to this folder')
      .addOption(jsonOption())
      .action(async (file: string, options: ConvertOptions) => {
        const folder = relative(options.out ?? '.', dirname(resolve(file))) || '.';
        const converted = await convertFile(file, folder, await load());
        await print(file, converted, { options, terminal });
        if (/^[./]+$/.test(folder) && converted.ini.includes(`\nroot = ${folder}\n`)) {
          const cure = '`--out DIR` writes it to another folder';
          writeLine(
            terminal.err,
            `The ini file must not lie in the folder that it serves: ${cure}.`,
          );
        }
        terminal.exitCode = converted.left.length === 0 ? 0 : 1;
      });
  }
};

async function convertFile(file: string, folder: string, convert: Convert): Promise<Converted> {
  const read = await readText(file, { bytesMax: convertedBytesMax });
  if ('refused' in read) throw new Failure('invalid', `${file} ${read.refused}`);
  try {
    return convert(read.text, file, includeReader(file), folder);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure('invalid', `${file}: ${error.message}`);
  }
}

async function print(
  file: string,
  converted: Converted,
  { options, terminal: { out, err } }: { options: ConvertOptions; terminal: Terminal },
): Promise<void> {
  const { left, notes, rules, ini } = converted;
  const lines = rules.map((rule) => JSON.stringify(rule));
  const files = Object.entries({
    ...(lines.length > 0 && { 'rules.ndjson': `${lines.join('\n')}\n` }),
    ...converted.files,
  });
  const header = `; Converted from ${basename(file)} by \`waymark convert\`.\n\n`;
  if (options.out !== undefined) {
    await mkdir(options.out, { recursive: true });
    await writeFile(join(options.out, 'server.ini'), header + ini + leftComments(left));
    for (const [name, text] of files) await writeFile(join(options.out, name), text);
  }
  if (options.json) writeLine(out, JSON.stringify(converted, undefined, 2));
  else if (options.out === undefined) {
    const others = files.map(
      ([name, text]) => `\n; ${name}:\n${text.replaceAll(/^(?=.)/gm, '; ')}`,
    );
    out.write(header + ini + others.join('') + leftComments(left));
  }
  for (const { file: within = file, line, text, says } of notes) {
    writeLine(err, `${within}:${line}: note: ${text}: ${says}`);
  }
  for (const { file: within = file, line, text, says } of left) {
    writeLine(err, `${within}:${line}: not converted: ${text}; nearest: ${says}`);
  }
  const count = left.length === 1 ? 'One line is' : `${left.length} lines are`;
  writeLine(err, left.length === 0 ? 'All lines are converted.' : `${count} not converted.`);
  if (options.out === undefined) return;
  const written = ['server.ini', ...files.map(([name]) => name)].join(', ');
  const next = `waymark check --config ${join(options.out, 'server.ini')}`;
  writeLine(err, `Written to ${options.out}: ${written}. Next: ${next}`);
}

/** The lines that are left, as comments of the ini file. */
function leftComments(left: readonly Remark[]): string {
  if (left.length === 0) return '';
  const lines = left.map(({ file, line, text, says }) => {
    const place = file === undefined ? `line ${line}` : `${file}, line ${line}`;
    return `; ${place}: ${text}\n;   nearest: ${says}\n`;
  });
  return `\n; Not converted:\n${lines.join('')}`;
}
