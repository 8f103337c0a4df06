import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'node:fs';
import { parseSync, type Declaration, type EcmaScriptModule } from 'oxc-parser';

/** A source file with the properties that the rules check. */
export interface Source {
  /** Path below the project, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Project paths of the files it imports. */
  readonly imports: readonly string[];
  /** Those among them that it loads when they are needed. */
  readonly loaded: readonly string[];
  /** Names of the packages and built-in modules that it imports, or whose files it reads. */
  readonly packages: readonly string[];
  /** Exported declarations that have no doc comment. */
  readonly undocumented: readonly string[];
  /** Exported names, types among them. */
  readonly exported: readonly string[];
  /** Names of the interfaces, types and classes among them. */
  readonly exportedTypes: readonly string[];
  /** Exported names of project files that it imports, as `path#name`. */
  readonly importedNames: readonly string[];
}

export const project = fileURLToPath(new URL('../..', import.meta.url));

/** Reads and parses the files that a pattern names. */
export function readSources(pattern: string): readonly Source[] {
  return globSync(pattern, { cwd: project })
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .map((path) => parseSource(path, readFileSync(join(project, path), 'utf8')));
}

/** Parses the text of a source file. */
export function parseSource(path: string, text: string): Source {
  const { program, comments, module } = parseSync(path, text);
  const documented = new Set(
    comments
      .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
      .map(({ end }) => end + (/^\s*/.exec(text.slice(end))?.[0].length ?? 0)),
  );
  const loaded = module.dynamicImports.map(({ moduleRequest: { start, end } }) =>
    text.slice(start + 1, end - 1),
  );
  const specifiers = [
    ...program.body.flatMap((statement) =>
      'source' in statement && statement.source !== null ? [statement.source.value] : [],
    ),
    ...loaded,
  ];
  const inProject = (names: readonly string[]): readonly string[] =>
    names
      .filter((name) => name.startsWith('.'))
      .map((name) => join(path, '..', name).replaceAll('\\', '/'));
  const exported = program.body.filter((statement) => statement.type === 'ExportNamedDeclaration');
  // Of several overloads, the first one has the comment.
  const documentedNames = new Set(
    exported
      .filter(({ start }) => documented.has(start))
      .flatMap(({ declaration }) => namesOf(declaration)),
  );
  return {
    path,
    text,
    lines: text.split('\n').length - 1,
    imports: inProject(specifiers),
    loaded: inProject(loaded),
    packages: [
      ...specifiers.filter((name) => !name.startsWith('.')),
      ...[...text.matchAll(/(?:import\.meta\.resolve|\brequire)\('([^']+)'\)/g)].map(
        ([, name = '']) => name,
      ),
    ],
    exported: exported.flatMap(({ declaration }) => namesOf(declaration)),
    exportedTypes: exported.flatMap(({ declaration }) =>
      isTypeDeclaration(declaration) ? namesOf(declaration) : [],
    ),
    importedNames: importedNames(path, text, module),
    undocumented: exported
      .flatMap(({ declaration }) => namesOf(declaration))
      .filter((name) => !documentedNames.has(name)),
  };
}

/** The names that a file imports from others of the project, or exports again; `*` for all of them. */
function importedNames(path: string, source: string, module: EcmaScriptModule): readonly string[] {
  const from = (specifier: string): string => join(path, '..', specifier).replaceAll('\\', '/');
  const named = module.staticImports.flatMap(({ moduleRequest, entries }) =>
    moduleRequest.value.startsWith('.')
      ? entries.map(({ importName: { name } }) => `${from(moduleRequest.value)}#${name ?? '*'}`)
      : [],
  );
  const dynamic = module.dynamicImports.flatMap(({ moduleRequest: { start, end } }) => {
    const text = source.slice(start + 1, end - 1);
    return text.startsWith('.') ? [`${from(text)}#*`] : [];
  });
  const again = module.staticExports
    .flatMap(({ entries }) => entries)
    .flatMap(({ moduleRequest, importName: { name } }) =>
      moduleRequest?.value.startsWith('.') === true
        ? [`${from(moduleRequest.value)}#${name ?? '*'}`]
        : [],
    );
  return [...named, ...again, ...dynamic];
}

function namesOf(declaration: Declaration | null): readonly string[] {
  if (declaration === null) return [];
  const declared = 'declarations' in declaration ? declaration.declarations : [declaration];
  return declared.flatMap(({ id }) => (id?.type === 'Identifier' ? [id.name] : []));
}

function isTypeDeclaration(declaration: Declaration | null): boolean {
  const types = ['TSInterfaceDeclaration', 'TSTypeAliasDeclaration', 'ClassDeclaration'];
  return declaration !== null && types.includes(declaration.type);
}
