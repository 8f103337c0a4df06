import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { markdownTable } from './schema-text.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** A metric as the code defines it. */
interface DefinedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/**
 * The metrics that the code defines. A running server answers some of them only with a certificate,
 * a hook or a source, so they are read from the sources. Throws for one without type or help.
 */
export function definedMetrics(): readonly DefinedMetric[] {
  const metrics = globSync('src/**/*.ts', { cwd: project })
    .sort()
    .flatMap((path) => metricsOf(readFileSync(join(project, path), 'utf8')));
  return [...new Map(metrics.map((one) => [one.name, one])).values()];
}

function metricsOf(source: string): readonly DefinedMetric[] {
  return [...source.matchAll(/'(waymark_[a-z_]+)'(?!;)/g)].flatMap(({ 1: name = '', index }) => {
    const around = source.slice(Math.max(0, index - 80), index + 300);
    const after = source.slice(index + name.length + 2, index + 400);
    const text =
      /^[^'"`]*?(?:help:)?\s*(?:'counter',|'gauge',|'histogram',)?[^'"`]*(['"`])(.*?)\1(?:\s*\+\s*(['"`])(.*?)\3)?/s;
    const found = text.exec(after);
    const help = `${found?.[2] ?? ''}${found?.[4] ?? ''}`;
    const type = /'(counter|gauge|histogram)'|\b(counter|gauge|histogram)\(/.exec(around);
    if (help === '') throw new Error(`The metric ${name} has no help.`);
    return [{ name, type: type?.[1] ?? type?.[2] ?? '', help }];
  });
}

/** The reference of metrics. */
export function metricsPage(): string {
  const rows = definedMetrics().map(({ name, type, help }) => [`\`${name}\``, type, help]);
  return `# Metrics

\`/svc1/metrics\` answers in the text format of Prometheus: to callers on this machine, and to others with a key of the
scope \`read\`. With several workers, the label \`process\` names the worker.

\`\`\`sh
curl -s http://localhost:8080/svc1/metrics
\`\`\`

${markdownTable(['metric', 'type', 'meaning'], rows)}
`;
}
