import type { ExampleLines, IniKey } from '../../src/core/config/ini-key.ts';
import { sectionKinds, type SectionKind } from '../../src/core/config/ini-section.ts';
import { variableWords } from '../../src/core/http/field-template.ts';
import { iniSections } from '../../src/sections.ts';

/** A key of the ini file with everything that the reference says about it. */
export interface DescribedKey extends Pick<IniKey<unknown>, 'about' | 'example'> {
  readonly section: string;
  readonly name: string;
  readonly key: IniKey<unknown>;
  /** The form of a value, in words. */
  readonly form: string;
  /** Whether a change needs a restart. */
  readonly restart: boolean;
  /** The version that brought it. */
  readonly since: string;
  /** A section in which it has a value, with the other keys that it needs. */
  readonly whole: string;
}

/** All keys of the ini file. */
export function describedKeys(): readonly DescribedKey[] {
  return sectionKinds(iniSections).flatMap((kind) =>
    kind.parts.flatMap((part) =>
      Object.entries(part.keys).map(([name, key]) => {
        const { about, example, restart = false, since = part.since } = key;
        const whole = wholeExample(kind, name, key);
        const form = formOf(key);
        return { section: kind.header, name, key, form, about, example, restart, since, whole };
      }),
    ),
  );
}

function wholeExample({ header, owner }: SectionKind, name: string, key: IniKey<unknown>): string {
  const { name: chosen = '', lines: needed } = owner.example ?? {};
  const lines: ExampleLines = { ...needed, ...key.beside, [name]: key.example };
  const written = Object.entries(lines).flatMap(([one, value]) => {
    if (typeof value !== 'string') return value.map((item) => `${one}[] = ${item}`);
    return value === '' ? [] : [`${one} = ${value}`];
  });
  const whole = [`[${header.replace(/<\w+>/, chosen)}]`, ...written].join('\n');
  return key.besideSection === undefined ? whole : `${whole}\n\n${key.besideSection}`;
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
function entryOf(described: DescribedKey): string {
  const { section, name, key, form, about, restart, since, whole } = described;
  const { defaultText } = key;
  const shown = defaultText === '' ? 'empty' : `\`${defaultText}\``;
  const facts = [
    `- Value: ${form}.`,
    `- Default: ${defaultText === undefined ? 'none' : shown}.`,
    `- A change takes effect ${restart ? 'at the next start' : 'at once, by a reload'}.`,
    `- Since ${since}.`,
  ];
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
  const kinds = new Map(sectionKinds(iniSections).map((kind) => [kind.header, kind.owner]));
  const parts = [...keys].map(([section, those]) => {
    const about = kinds.get(section)?.about;
    const introduction = about === undefined ? '' : `${about}\n\n`;
    const links = those.map((one) => `[\`${one.name}\`](#${anchorOf(one)})`).join(' · ');
    const entries = those.map(entryOf).join('\n');
    return `## \`[${section}]\`\n\n${introduction}${links}\n\n${entries}`;
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
