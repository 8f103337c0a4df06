import { basename } from 'node:path';
import { Conversion, type Converted } from '../conversion.ts';
import { addMount } from '../sections.ts';
import { readHeaderBlocks, addHeaderBlock } from './headers.ts';
import { addRule, readRule } from './redirects.ts';
import type { NetlifySite } from './site.ts';
import { readToml } from './toml.ts';

/**
 * Converts a `_redirects`, a `_headers` or a `netlify.toml`, which its name tells apart. Throws
 * `invalid` if a `netlify.toml` cannot be parsed.
 */
export function convertNetlify(text: string, file: string): Converted {
  const conversion = new Conversion();
  const name = basename(file);
  if (name.endsWith('.toml')) {
    const toml = readToml(conversion, text);
    const site = siteOf(conversion, toml.root);
    for (const rule of toml.rules) addRule(site, rule);
    for (const block of toml.blocks) addHeaderBlock(site, block);
    return conversion.finish();
  }
  const site = siteOf(conversion, '.');
  const lines = text.split(/\r\n|\n|\r/);
  if (name.includes('headers')) {
    for (const block of readHeaderBlocks(conversion, lines)) addHeaderBlock(site, block);
    return conversion.finish();
  }
  for (const [at, line] of lines.entries()) {
    const rule = readRule(conversion, line, at + 1);
    if (rule !== undefined) addRule(site, rule);
  }
  return conversion.finish();
}

/** The folder of the site, with the addresses and the error page that such hosts give it. */
function siteOf(conversion: Conversion, root: string): NetlifySite {
  const place = { conversion, origins: ['*'], name: 'site' };
  const [mount] = addMount(place, { path: '/', root, errors: '/' }, { line: 0, text: '' });
  mount?.set('clean_urls', 'yes');
  return { ...place, mount, root };
}
