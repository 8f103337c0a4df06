import { atOnce, type Steps } from '../fair/turns.ts';
import { type ParsedIni, sectionKinds } from './ini-section.ts';
import type { LineProblem } from './problem.ts';

/** Finds keys of an ini text that contradict each other, without reading other files. */
export function consistencyProblems(ini: ParsedIni): readonly LineProblem[] {
  return atOnce(consistencySteps(ini));
}

/** The steps of consistencyProblems: one for each kind of section, and those of its check. */
export function* consistencySteps(ini: ParsedIni): Steps<readonly LineProblem[]> {
  const problems: LineProblem[] = [];
  for (const section of ini.sections) {
    yield;
    const found = section.check?.(ini.all(section), ini) ?? [];
    problems.push(...('next' in found ? yield* found : found));
  }
  return [...problems, ...fieldsWithoutOwner(ini)];
}

/** Finds header fields for sections that do not exist. */
function fieldsWithoutOwner(ini: ParsedIni): readonly LineProblem[] {
  const kinds = sectionKinds(ini.sections);
  return kinds.flatMap(({ owner, prefix, tail }) => {
    if (tail === undefined) return [];
    const whose = kinds.find((kind) => kind.prefix === prefix && kind.tail === undefined);
    const names = new Set(whose && ini.all(whose.owner).map(({ name }) => name));
    return ini.all(owner).flatMap(({ name, line }) => {
      const message = `[${prefix}.${name}.${tail}] has no effect: there is no [${prefix}.${name}]`;
      return names.has(name) ? [] : [{ line, message }];
    });
  });
}
