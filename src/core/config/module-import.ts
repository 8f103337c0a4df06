import { registerHooks } from 'node:module';
import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Keys } from './ini-key.ts';

/** The default export of a module's file, as far as every module has it. */
interface ImportedModule {
  readonly keys: Keys;
  /** The default export itself. */
  readonly module: object;
}

/** The members that a module may have, with the type of each. */
const members: Readonly<Record<string, 'object' | 'function'>> = {
  keys: 'object',
  operations: 'object',
  open: 'function',
  provision: 'function',
  close: 'function',
};

/** A specifier for a package that a module's ini file names, to be found from there. */
const packagePrefix = 'waymark-package:';

let isHooked = false;

/**
 * Loads a module that is not a part of Waymark: from a file, or from a package that Node finds from
 * the folder of the ini file. Its code runs from now on. Returns why it cannot be used, as the end
 * of a sentence.
 */
export async function importModule(
  from: string,
  folder: string,
): Promise<ImportedModule | { readonly refused: string }> {
  hook();
  const url = isAbsolute(from)
    ? pathToFileURL(from).href
    : `${packagePrefix}${from}?${pathToFileURL(`${folder}/`).href}`;
  let exported: { readonly default?: unknown };
  try {
    exported = (await import(url)) as typeof exported;
  } catch (error) {
    return { refused: reasonOf(error) };
  }
  const { default: module } = exported;
  if (module === undefined) return { refused: 'it has no default export' };
  if (typeof module !== 'object' || module === null) {
    return { refused: 'its default export is no object: write export default { … }' };
  }
  return shapeProblem(module) ?? { keys: (module as { keys?: Keys }).keys ?? {}, module };
}

function shapeProblem(module: object): { readonly refused: string } | undefined {
  for (const [name, value] of Object.entries(module)) {
    const type = Object.hasOwn(members, name) ? members[name] : undefined;
    if (type === undefined) {
      return { refused: `it has an unknown member \`${name}\`, besides ${known}` };
    }
    if (value !== undefined && (typeof value !== type || value === null)) {
      return { refused: `its member \`${name}\` is no ${type}` };
    }
  }
  const { keys = {}, operations = [] } = module as { keys?: object; operations?: unknown };
  for (const [name, key] of Object.entries(keys)) {
    if (name === 'from' || !/^[a-z][a-z0-9_]*$/.test(name) || !isKey(key)) {
      return { refused: `its key \`${name}\` is made by none of single, optional and list` };
    }
  }
  if (!Array.isArray(operations)) return { refused: 'its member `operations` is no list' };
  return operations.map(operationProblem).find((problem) => problem !== undefined);
}

const known = Object.keys(members)
  .map((name) => `\`${name}\``)
  .join(', ');

function isKey(key: unknown): boolean {
  return typeof key === 'object' && key !== null && 'parse' in key && 'isList' in key;
}

function operationProblem(operation: unknown): { readonly refused: string } | undefined {
  const given = operation as Readonly<Record<string, unknown>> | null;
  const name = given?.name;
  if (typeof name !== 'string' || !/^[a-z][a-z_]{0,62}$/.test(name)) {
    return { refused: 'an operation needs a `name` of the letters a to z and _' };
  }
  const isWhole =
    typeof given?.run === 'function' &&
    typeof given.summary === 'string' &&
    typeof given.input === 'object' &&
    typeof given.output === 'object' &&
    (given.effect === 'reads' || given.effect === 'writes');
  if (isWhole) return undefined;
  const needs = '`effect` (reads or writes), `summary`, `input`, `output` and `run`';
  return { refused: `its operation \`${name}\` needs ${needs}` };
}

/** Lets modules import `waymark/module` from anywhere, and finds packages from the ini file. */
function hook(): void {
  if (isHooked) return;
  isHooked = true;
  // In the bundle, this file is a part of one in the same folder as that of the contract.
  const contract = import.meta.url.endsWith('.ts') ? '../custom/contract.ts' : './contract.js';
  const contractUrl = new URL(contract, import.meta.url).href;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'waymark/module') return next(contractUrl, context);
      if (!specifier.startsWith(packagePrefix)) return next(specifier, context);
      const [name = '', parentURL = ''] = specifier.slice(packagePrefix.length).split('?');
      return next(name, { ...context, parentURL });
    },
  });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return `it throws ${String(error)}`;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ERR_MODULE_NOT_FOUND') {
    return error.message.replace(/ imported from .*/s, '').replace(/^Cannot find/, 'there is no');
  }
  const place = placeOf((error.stack ?? '').replace(error.message, ''));
  return `${error.name}: ${error.message}${place === undefined ? '' : ` (${place})`}`;
}

/** Where an error happened: the place in the first line of its stack that names one. */
function placeOf(stack: string): string | undefined {
  const line = stack.split('\n').find((one) => /:\d+:\d+\)?$/.test(one));
  return line?.slice(line.lastIndexOf('(') + 1).replace(/^ *at |\)$/g, '');
}
