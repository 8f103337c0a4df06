import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { project } from '../tidy/sources.ts';

const folder = join(project, 'console/src');

/** The classes and elements that have rules of their own in a style sheet, without what is in them. */
function styledIn(file: string): readonly string[] {
  const text = readFileSync(join(folder, file), 'utf8').replaceAll(/\/\*.*?\*\//gs, '');
  const selectors = [...text.matchAll(/([^{}]+)\{/g)].flatMap(([, list = '']) => list.split(','));
  const whole = selectors.map((one) => /^\s*([.\w-]+)\s*$/.exec(one)?.[1] ?? '');
  return [...new Set(whole.filter((one) => one !== ''))];
}

suite('style sheets of the console', () => {
  test('a class has its rules in one of them: those of a screen stay when another one is shown', () => {
    const owners = new Map<string, string>();
    const files = globSync('**/*.css', { cwd: folder }).toSorted();
    assert.ok(files.length > 5);
    const twice = files.flatMap((file) =>
      styledIn(file).flatMap((name) => {
        const owner = owners.get(name) ?? file;
        owners.set(name, owner);
        return owner === file ? [] : [`${name}: ${owner}, ${file}`];
      }),
    );
    assert.deepEqual(twice, []);
  });

  test('only tokens.css names colours', () => {
    const others = globSync('**/*.css', { cwd: folder }).filter((file) => file !== 'tokens.css');
    const named = others.flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      return [...text.matchAll(/#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch)\([^)]*\)/g)].map(
        ([colour]) => `${file}: ${colour}`,
      );
    });
    assert.deepEqual(named, []);
  });
});
