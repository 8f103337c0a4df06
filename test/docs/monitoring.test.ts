import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { definedMetrics } from '../../docs/reference/metrics.ts';
import { temporaryFolder, writeFiles, type Cleaning } from '../folder.ts';
import { startSite } from '../harness.ts';
import { installed } from '../installed.ts';
import { project } from '../tidy/sources.ts';

const folder = join(project, 'packaging/prometheus');
const alerts = readFileSync(join(folder, 'alerts.yml'), 'utf8');
const dashboard = readFileSync(join(project, 'packaging/grafana/waymark.json'), 'utf8');

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const expressions = (JSON.parse(dashboard) as Dashboard).panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

/** Runs promtool, which must find no mistake. */
function promtool(...words: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', words, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}

test('alerts and dashboard use only metrics of the reference', () => {
  const known = definedMetrics().flatMap(({ name, type }) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
  );
  for (const text of [alerts, ...expressions.map(([, expression]) => expression)]) {
    const used = text.match(/\bwaymark_[a-z_]+/g) ?? [];
    assert.ok(used.length > 0, text);
    assert.deepEqual(
      used.filter((name) => !known.includes(name)),
      [],
    );
  }
});

test('their labels are those of a running server', async (t) => {
  const site = await startSite(t);
  await (await fetch(`${site.url}/missing`)).text();
  const text = await (await fetch(`${site.url}/svc1/metrics`)).text();
  assert.match(text, /^waymark_requests_total\{status="4xx",source="none"\} 1$/m);
  assert.match(text, /^waymark_request_duration_seconds_bucket\{source="none",le="/m);
});

/** Each query of the dashboard as a recording rule, with values for the variables of Grafana. */
async function dashboardRules(t: Cleaning): Promise<string> {
  const rules = expressions.map(([, expression], at) => ({
    record: `waymark:query${at}`,
    expr: expression.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, 'x'),
  }));
  const path = await temporaryFolder(t);
  // JSON is YAML.
  await writeFiles(path, {
    'rules.yml': JSON.stringify({ groups: [{ name: 'dashboard', rules }] }),
  });
  return join(path, 'rules.yml');
}

suite('promtool', { skip: installed('promtool') }, () => {
  test('accepts the alerts, which fire when they should', () => {
    promtool('check', 'rules', join(folder, 'alerts.yml'));
    promtool('test', 'rules', join(folder, 'alerts.test.yml'));
  });

  test('accepts every query of the dashboard', async (t) => {
    promtool('check', 'rules', await dashboardRules(t));
  });
});
