import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  parseSync,
  Visitor,
  type CallExpression,
  type NewExpression,
  type Node,
  type Program,
} from 'oxc-parser';
import { project } from './sources.ts';

/** A regular expression of a file. */
export interface Pattern {
  /** Path below the project, and line. */
  readonly place: string;
  /** Undefined if it is built while the program runs. */
  readonly source: string | undefined;
  readonly flags: string;
}

/** The parts of an expression that are read: of an argument, or of a constant. */
type Expression = Node | null | undefined;

/** The constants of a file by name, and where its imported ones come from. */
interface Module {
  readonly path: string;
  readonly text: string;
  readonly program: Program;
  readonly constants: ReadonlyMap<string, Expression>;
  readonly imported: ReadonlyMap<string, readonly [path: string, name: string]>;
}

const modules = new Map<string, Module>();

/**
 * The regular expressions in the files of a glob: literals, those that `RegExp` builds from constants,
 * and each `pattern` of a JSON Schema.
 */
export function readPatterns(glob: string): readonly Pattern[] {
  const paths = globSync(glob, { cwd: project }).map((path) => path.replaceAll('\\', '/'));
  return paths
    .sort()
    .flatMap((path) => (path.endsWith('.json') ? schemaPatterns(path) : codePatterns(path)));
}

function codePatterns(path: string): readonly Pattern[] {
  const module = moduleAt(path);
  const found: Pattern[] = [];
  const note = (start: number, source: string | undefined, flags: string): void => {
    const line = module.text.slice(0, start).split('\n').length;
    found.push({ place: `${path}:${line}`, source, flags });
  };
  const noteCall = (call: NewExpression | CallExpression): void => {
    if (call.callee.type !== 'Identifier' || call.callee.name !== 'RegExp') return;
    const [source, flags] = call.arguments;
    note(call.start, constant(source, module), constant(flags, module) ?? '');
  };
  new Visitor({
    Literal(literal) {
      if ('regex' in literal) note(literal.start, literal.regex.pattern, literal.regex.flags);
    },
    NewExpression: noteCall,
    CallExpression: noteCall,
    Property({ key, value, start }) {
      const isPattern = key.type === 'Identifier' && key.name === 'pattern';
      const source = isPattern ? constant(value, module) : undefined;
      // As Ajv compiles it.
      if (source !== undefined) note(start, source, 'u');
    },
  }).visit(module.program);
  return found;
}

function schemaPatterns(path: string): readonly Pattern[] {
  const found: Pattern[] = [];
  JSON.parse(readFileSync(join(project, path), 'utf8'), (name, value: unknown) => {
    if (name === 'pattern' && typeof value === 'string') {
      found.push({ place: path, source: value, flags: 'u' });
    }
    return value;
  });
  return found;
}

function moduleAt(path: string): Module {
  const known = modules.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(join(project, path), 'utf8');
  const { program } = parseSync(path, text);
  const constants = new Map<string, Expression>();
  const imported = new Map<string, readonly [string, string]>();
  for (const statement of program.body) {
    if (statement.type === 'ImportDeclaration' && statement.source.value.startsWith('.')) {
      const target = join(path, '..', statement.source.value).replaceAll('\\', '/');
      for (const specifier of statement.specifiers) {
        if (specifier.type !== 'ImportSpecifier' || specifier.imported.type !== 'Identifier') {
          continue;
        }
        imported.set(specifier.local.name, [target, specifier.imported.name]);
      }
    }
    const declared =
      statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared?.type !== 'VariableDeclaration' || declared.kind !== 'const') continue;
    for (const { id, init } of declared.declarations) {
      if (id.type === 'Identifier') constants.set(id.name, init);
    }
  }
  const module = { path, text, program, constants, imported };
  modules.set(path, module);
  return module;
}

/** The text of an expression; undefined if it is not built from constants. */
function constant(expression: Expression, module: Module): string | undefined {
  if (expression?.type === 'Literal') {
    const { value } = expression;
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
  }
  if (expression?.type === 'Identifier') return namedConstant(expression.name, module);
  if (expression?.type === 'TemplateLiteral') {
    const values = expression.expressions.map((part) => constant(part, module));
    if (values.includes(undefined)) return undefined;
    const texts = expression.quasis.map(({ value }) => value.cooked ?? '');
    return texts.map((text, at) => text + (values[at] ?? '')).join('');
  }
  // ['a', 'b'].join('|')
  if (expression?.type !== 'CallExpression') return undefined;
  const { callee, arguments: words } = expression;
  if (callee.type !== 'MemberExpression' || callee.object.type !== 'ArrayExpression') {
    return undefined;
  }
  if (callee.property.type !== 'Identifier' || callee.property.name !== 'join') return undefined;
  const parts = callee.object.elements.map((part) => constant(part, module));
  return parts.includes(undefined) ? undefined : parts.join(constant(words[0], module));
}

function namedConstant(name: string, module: Module): string | undefined {
  if (module.constants.has(name)) return constant(module.constants.get(name), module);
  const [path, exported] = module.imported.get(name) ?? [];
  return path === undefined || exported === undefined
    ? undefined
    : namedConstant(exported, moduleAt(path));
}
