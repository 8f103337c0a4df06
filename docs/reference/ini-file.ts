import type { IniKey, KeyText } from '../../src/core/config/ini-key.ts';
import { type SectionKind, sections } from '../../src/core/config/schema.ts';
import { variableWords } from '../../src/core/http/field-template.ts';
import { wholeExample } from './ini-example.ts';
import { keyTexts } from './ini-keys.ts';
import { sinceVersion } from './ini-since.ts';

/** A key of the ini file with everything that the reference says about it. */
export interface DescribedKey extends KeyText {
  readonly section: SectionKind;
  readonly name: string;
  readonly key: IniKey<unknown>;
  /** The form of a value, in words. */
  readonly form: string;
}

/** All keys of the ini file. */
export function describedKeys(): readonly DescribedKey[] {
  return (Object.keys(sections) as SectionKind[]).flatMap((section) =>
    Object.entries<IniKey<unknown>>(sections[section]).map(([name, key]) => {
      const texts = keyTexts[section] as Readonly<Record<string, KeyText>>;
      const text = texts[name];
      if (text === undefined) throw new Error(`[${section}] ${name} has no text in ini-keys.ts.`);
      return { section, name, key, form: formOf(key), ...text };
    }),
  );
}

/** What the parser of a key says that a value has to be. */
function formOf({ parse, isPath, isList, isOnePerLine }: IniKey<unknown>): string {
  const refused = [' ', '\t', '?\\:', '-', '0'].flatMap((text) => {
    const parsed = parse(text);
    return 'refused' in parsed ? [parsed.refused] : [];
  });
  const [first] = refused;
  if (isPath === true) return 'path of a file or folder; relative to the folder of the ini file';
  const words = first?.replace(/^write /, '').replace(/^an? /, '') ?? 'text';
  if (isOnePerLine === true) return `${words}; several as \`[]\``;
  return isList ? `list of: ${words}` : words;
}

/** The entry of a key: meaning, form, default, since when, how a change applies, an example. */
function entryOf({ section, name, key, form, about, example, restart }: DescribedKey): string {
  const { defaultText } = key;
  const shown = defaultText === '' ? 'empty' : `\`${defaultText}\``;
  const facts = [
    `- Value: ${form}.`,
    `- Default: ${defaultText === undefined ? 'none' : shown}.`,
    `- A change takes effect ${restart === true ? 'at the next start' : 'at once, by a reload'}.`,
    `- Since ${sinceVersion(section, name)}.`,
  ];
  const whole = wholeExample(section, name, example);
  return `### \`${name}\` in \`[${section}]\`

${about}

${facts.join('\n')}

\`\`\`ini
${whole}
\`\`\`
`;
}

/** The fragment of the heading of an entry. */
function anchorOf({ name, section }: Pick<DescribedKey, 'name' | 'section'>): string {
  return `${name} in ${section}`.replaceAll(/[.<>]/g, '').replaceAll(' ', '-');
}

/** The reference of the ini file. */
export function iniFilePage(): string {
  const keys = Map.groupBy(describedKeys(), ({ section }) => section);
  const parts = [...keys].map(([section, those]) => {
    const links = those.map((one) => `[\`${one.name}\`](#${anchorOf(one)})`).join(' · ');
    const entries = those.map(entryOf).join('\n');
    return `## \`[${section}]\`\n\n${introductions[section] ?? ''}${links}\n\n${entries}`;
  });
  return `# The ini file

One file configures the server: \`waymark serve --config server.ini\`. \`waymark check\` validates it and prints every key
with its value. [The sample file](sample-ini.md) shows all keys with comments. A line that begins with \`;\` is a comment;
\`\${NAME}\` in a value is a variable of the environment or of \`[variables]\`.

The server reads a changed file by itself, validates all of it and applies it between two requests. A mistake changes
nothing. Some keys take effect at the next start only; their entries say so. Editors can check the file as JSON by
[its JSON Schema](schemas.md).

The example of each key is a whole section, with what else the key needs.

## Included files

\`[server] include = sites/*.ini\` reads more files, in the order of their names. They may have the sections with a name, such as
\`[disk.shop]\`; the others belong to the ini file itself. Relative paths in an included file are relative to that file. A section
may be in one file only. The server watches the files and their folder: a new file is a new site, without a restart. A mistake in
one file changes nothing, as in the ini file itself: all sites stay as they were, and the message names the file and its line. The
server does not start with a mistake in any of them.

## \`[variables]\`

Values for \`\${NAME}\`, if the environment has none of that name: \`SHOP_PORT = 8080\`.

${parts.join('\n')}
## \`[disk.<name>.headers]\`

Header fields that the mount adds to its answers: \`X-Frame-Options = DENY\`. Quote a value that contains a \`;\`.

## \`[proxy.<name>.headers]\` and the fields of \`[headers.<name>]\`

Header fields of answers: \`Cache-Control = "public, max-age=60"\`. A line replaces the fields of its name, an empty value removes
them, and \`Link[] = …\` adds one. \`Vary\` keeps what the answer varies by. Values may have the variables below. The
sections apply in the order of the file, after the fields of a mount or source; a later line wins. They apply to files, pages,
answers of sources, redirects, errors and 304, but not below \`/svc1\`.

## \`[proxy.<name>.request_headers]\`

Header fields of the requests to the application, in place of those of the client: \`X-Real-IP = \${client.ip}\`. An empty
value removes the field. Values may have ${variableWords}. \`$\${\` is a literal \`\${\`. A value
loses control characters; a field whose value is empty is not sent.
`;
}

const introductions: Readonly<Partial<Record<SectionKind, string>>> = {
  'disk.<name>':
    'A folder that the server publishes. Only this file can publish folders; no operation can.\n\n',
  'proxy.<name>':
    'An application behind Waymark. It may be in a private network, since only this file names it.\n\n',
  'redirect.<name>':
    'A redirect, with one of `to`, `file` and `trailing_slash`. It comes before all other sources; the first one of the file that applies answers. A circle is refused.\n\n',
  'rewrite.<name>':
    'The content of another path answers, and the address stays. It comes after redirects and before all content; the first one of the file that matches decides, and a path without content gets 404.\n\n',
  'access.<name>':
    'Who may see some paths, whatever source they come from. A visitor must satisfy every section whose paths match.\n\n',
  'login.<name>': 'A further provider where visitors sign in. It has the keys of `[login]`.\n\n',
  'log.<name>':
    'The lines of some paths in the access log. The first section of the file whose path matches decides.\n\n',
  'headers.<name>': 'Header fields of answers. All other lines of the section are fields.\n\n',
  'tls.<host>': 'The certificate of one name.\n\n',
  'engine.<name>': 'An engine of your own for generic pages.\n\n',
  node: 'Without `central`, a reload applies all of these keys.\n\n',
  'table.<name>': 'A table whose rows a form shows or changes.\n\n',
  'event.<name>':
    'A type of events that applications insert. The name is that of the type, such as `[event.order.shipped]`.\n\n',
};
