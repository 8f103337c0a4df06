import { missingPackage } from '../values/lazy-packages.ts';
import { type ParsedSection, type ReadFiles, problemOf } from './ini-section.ts';

/**
 * The problem of a key whose setting needs a package that is not installed. `load` is what loads
 * the package for the setting; it is loaded now.
 */
export async function packageProblems(
  section: Pick<ParsedSection, 'line' | 'lines'>,
  key: string,
  load: () => unknown,
): Promise<Required<Pick<ReadFiles, 'problems'>>> {
  const name = await missingPackage(load);
  if (name === undefined) return { problems: [] };
  const message = `\`${key}\` needs the package ${name}, which is not here: npm install ${name}`;
  return { problems: [problemOf(section, key, message)] };
}
