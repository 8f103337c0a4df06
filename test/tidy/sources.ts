import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'node:fs';
import ts from 'typescript';

/** One function of a source file, with the lines of its body. */
export interface SourceFunction {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
}

/** A source file as the house rules look at it. */
export interface Source {
  /** Path below the project, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Project paths of the files it imports. */
  readonly imports: readonly string[];
  /** Names of the packages and built-in modules it imports, or whose files it reads. */
  readonly packages: readonly string[];
  readonly functions: readonly SourceFunction[];
  /** Exported declarations that have no doc comment. */
  readonly undocumented: readonly string[];
  /** Exported functions, classes and constants: types are part of their signatures. */
  readonly exported: readonly string[];
}

export const project = fileURLToPath(new URL('../..', import.meta.url));

/** Reads and parses the files that a pattern names. */
export function readSources(pattern: string): readonly Source[] {
  return globSync(pattern, { cwd: project })
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .map(readSource);
}

function readSource(path: string): Source {
  const text = readFileSync(join(project, path), 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const specifiers = file.statements.flatMap((statement) =>
    (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) &&
    statement.moduleSpecifier !== undefined &&
    ts.isStringLiteral(statement.moduleSpecifier)
      ? [statement.moduleSpecifier.text]
      : [],
  );
  const exported = file.statements.filter(isExported);
  return {
    path,
    text,
    lines: text.split('\n').length - 1,
    imports: specifiers
      .filter((name) => name.startsWith('.'))
      .map((name) => join(path, '..', name).replaceAll('\\', '/')),
    packages: [
      ...specifiers.filter((name) => !name.startsWith('.')),
      ...[...text.matchAll(/import\.meta\.resolve\('([^']+)'\)/g)].map(([, name = '']) => name),
    ],
    functions: functionsOf(file),
    exported: exported.filter(isValue).flatMap(namesOf),
    undocumented: exported
      .filter((statement) => ts.getJSDocCommentsAndTags(statement).length === 0)
      .flatMap(namesOf),
  };
}

function isExported(statement: ts.Statement): boolean {
  return (
    ts.canHaveModifiers(statement) &&
    (ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false)
  );
}

function isValue(statement: ts.Statement): boolean {
  return !ts.isInterfaceDeclaration(statement) && !ts.isTypeAliasDeclaration(statement);
}

function namesOf(statement: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  const { name } = statement as ts.DeclarationStatement;
  return name === undefined ? [] : [name.getText()];
}

function functionsOf(file: ts.SourceFile): readonly SourceFunction[] {
  const found: SourceFunction[] = [];
  const lineOf = (position: number) => file.getLineAndCharacterOfPosition(position).line + 1;
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const line = lineOf(node.getStart());
      const name = node.name?.getText() ?? 'an arrow function';
      found.push({ name, line, lines: lineOf(node.getEnd()) - line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}
