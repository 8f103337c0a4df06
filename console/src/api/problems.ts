import { useEffect, useState } from 'preact/hooks';
import { call, type JsonObject, type Problem } from './api.ts';

interface ImportReport {
  readonly refusals: readonly { readonly why: string; readonly field?: string }[];
  readonly unknowns: readonly { readonly problems: readonly Problem[] }[];
}

/**
 * What the server says about the fields of a page rule, shortly after their last change; it stores
 * nothing. `fields` is undefined while there is nothing to check.
 */
export function useProblems(fields: JsonObject | undefined): readonly Problem[] {
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const ndjson = fields === undefined ? undefined : JSON.stringify(fields);
  useEffect(() => {
    if (ndjson === undefined) return undefined;
    const abort = new AbortController();
    const check = async (): Promise<void> => {
      const report = await call<ImportReport>(
        'userinterface.import',
        { ndjson, dry_run: true },
        { signal: abort.signal },
      );
      const refused = report.refusals.map(({ field = 'path', why }) => ({
        ...{ field, message: why, reason: 'refused' },
      }));
      setProblems([...refused, ...report.unknowns.flatMap(({ problems: all }) => all)]);
    };
    const timer = setTimeout(() => void check().catch(() => undefined), 400);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [ndjson]);
  return problems;
}

/** The messages of problems of a field, or of a part of it. */
export function problemsOf(problems: readonly Problem[], name: string): readonly string[] {
  return problems
    .filter(({ field }) => field === name || field.startsWith(`${name}.`))
    .map(({ message }) => message);
}
