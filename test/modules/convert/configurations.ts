import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Converted } from '../../../src/modules/convert/conversion.ts';
import { convertApache } from '../../../src/modules/convert/apache/convert.ts';
import { convertCaddy } from '../../../src/modules/convert/caddy/convert.ts';
import { convertNetlify } from '../../../src/modules/convert/netlify/convert.ts';
import { convertNginx } from '../../../src/modules/convert/nginx/convert.ts';
import { project } from '../../tidy/sources.ts';

/** The converters by the names of their folders. */
export const converters: Readonly<
  Record<string, (text: string, file: string, folder?: string) => Converted>
> = {
  nginx: (text, file) => convertNginx(text, file),
  caddy: (text, file) => convertCaddy(text, file),
  apache: (text, file, folder) => convertApache(text, file, undefined, folder),
  netlify: (text, file, folder) => convertNetlify(text, file, undefined, folder),
};

/** A request to both servers: a method, a host and a path. */
export interface Question {
  readonly method: string;
  /** Empty for the address of the server. */
  readonly host: string;
  readonly path: string;
}

/** A configuration of another server, written for these tests. */
export interface Configuration {
  readonly format: string;
  /** Its path below `configurations`. */
  readonly name: string;
  /** With `{{PORT}}`, `{{ROOT}}`, `{{APP}}` and `{{APP2}}`. */
  readonly text: string;
  /** The lines that cannot be converted. */
  readonly left: readonly number[];
  /** Requests whose answers are compared; none if that needs TLS, DNS or another program. */
  readonly questions: readonly Question[];
  /** Answers that the documentation of the other server promises. */
  readonly expected: readonly (Question & { readonly status: number; readonly location: string })[];
  /** Header fields that are compared. */
  readonly fields: readonly string[];
}

const folder = join(project, 'test/modules/convert/configurations');

/** All configurations; comments at their start say what is expected of them. */
export function configurations(): readonly Configuration[] {
  const paths = globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  return paths.map((path) => {
    const name = path.slice(folder.length + 1).replaceAll('\\', '/');
    const text = readFileSync(path, 'utf8');
    const [format = ''] = name.split('/');
    return {
      ...{ format, name, text },
      left: listOf(text, 'left').map(Number),
      questions: listOf(text, 'ask').map(questionOf),
      expected: listOf(text, 'expect').map(expectedOf),
      fields: listOf(text, 'fields'),
    };
  });
}

function listOf(text: string, word: string): readonly string[] {
  const found = new RegExp(`^# ${word}: (.*)$`, 'm').exec(text)?.[1] ?? '';
  return found.split(/,\s+/).filter(Boolean);
}

/** `[host] path status [location]`. */
function expectedOf(text: string): Configuration['expected'][number] {
  const [, question = '', status, location = ''] = /^(.+?) (\d{3})(?: (\S+))?$/.exec(text) ?? [];
  return { ...questionOf(question), status: Number(status), location };
}

function questionOf(text: string): Question {
  const words = text.split(' ');
  const path = words.at(-1) ?? '/';
  const [first = ''] = words.length > 1 ? words : [''];
  const isMethod = /^[A-Z]+$/.test(first);
  return { method: isMethod ? first : 'GET', host: isMethod ? '' : first, path };
}
