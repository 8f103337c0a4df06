import { fieldToken, fieldValue, isServersOwn } from '../../core/config/headers.ts';
import { customHeadersMax } from '../../core/config/limits.ts';
import { encodeNonAscii, readPath } from '../../core/values/path.ts';
import { splitOrigin } from '../redirects/redirect-lines.ts';

const headerBlocksMax = 1_000;

/** A path of a file `_headers`, with the fields of its answers. */
export interface HeaderBlock {
  readonly line: number;
  /** `*` for every origin. */
  readonly origin: string;
  /**
   * A canonical path; a segment such as `:year` stands for any segment, and `*` for any text.
   */
  readonly path: string;
  /** Name, template, name, template …, as in `[headers.<name>]`. */
  readonly fields: readonly string[];
}

/** The blocks of a file, and why some of its lines are not used, each as the end of a sentence. */
interface ParsedHeaderBlocks {
  readonly blocks: readonly HeaderBlock[];
  readonly mistakes: readonly { readonly line: number; readonly message: string }[];
}

/** A block that gets the fields of the next lines. */
interface OpenBlock extends HeaderBlock {
  readonly fields: string[];
}

/**
 * Parses a file in the format that Netlify documents for `_headers`: a path on a line of its own,
 * then `Name: value` on each line. `! Name` removes a field, as on Cloudflare Pages. A line with a
 * mistake leaves the others as they are; after headerBlocksMax paths, the rest is not used.
 */
export function parseHeaderBlocks(text: string): ParsedHeaderBlocks {
  const blocks: OpenBlock[] = [];
  const mistakes: { line: number; message: string }[] = [];
  let current: OpenBlock | undefined;
  let isSkipping = false;
  for (const [at, written] of text.split('\n').entries()) {
    const line = at + 1;
    const trimmed = written.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    let mistake: string | undefined;
    if (/^(?:\/|https?:\/\/)/i.test(trimmed)) {
      const place = parsePlace(trimmed);
      isSkipping = typeof place === 'string';
      if (typeof place === 'string') mistake = place;
      else if (blocks.length === headerBlocksMax) {
        mistakes.push({ line, message: `begins more than ${headerBlocksMax} paths` });
        break;
      } else blocks.push((current = { line, ...place, fields: [] }));
    } else if (current === undefined || isSkipping) {
      if (!isSkipping) mistake = 'has a field before the first path';
    } else mistake = addField(current.fields, trimmed);
    if (mistake !== undefined) mistakes.push({ line, message: mistake });
  }
  return { blocks: blocks.filter(({ fields }) => fields.length > 0), mistakes };
}

function parsePlace(written: string): Pick<HeaderBlock, 'origin' | 'path'> | string {
  const { origin, rest } = splitOrigin(written);
  if (origin === undefined) return `has no valid origin in \`${written}\``;
  const path = readPath(encodeNonAscii(rest));
  if (typeof path !== 'string') return `has the path \`${written}\`: ${path.reason}`;
  if (/\/:[A-Za-z_]\w*(?:\/|$)/.test(path) && /\*(?!$)/.test(path)) {
    return 'has a placeholder and a * before the end of the path: use one of both';
  }
  return { origin, path };
}

/** Adds the field of a line; returns what is wrong with it. */
function addField(fields: string[], written: string): string | undefined {
  const [, removed] = /^!\s*(\S+)$/.exec(written) ?? [];
  const colon = written.indexOf(':');
  if (removed === undefined && colon < 1) return `has \`${written}\`, which is no \`Name: value\``;
  const name = removed ?? written.slice(0, colon).trim();
  const value = removed === undefined ? written.slice(colon + 1) : '';
  const parsedName = fieldToken(name);
  if ('refused' in parsedName) return `has the field \`${name}\`: ${parsedName.refused}`;
  const lower = parsedName.value;
  if (lower === 'basic-auth') return 'has Basic-Auth: Waymark asks for no password here';
  if (isServersOwn(lower)) return `has the field \`${name}\`: the server sets that field itself`;
  const parsed = fieldValue(value);
  if ('refused' in parsed) return `has a value for \`${name}\`: ${parsed.refused}`;
  if (fields.length / 2 >= customHeadersMax) return `is field ${customHeadersMax + 1} of its path`;
  const isAdded = fields.some((one, at) => at % 2 === 0 && one.toLowerCase() === lower);
  // The file has no variables.
  fields.push(isAdded ? `${name}[]` : name, parsed.value.replaceAll('${', '$${'));
  return undefined;
}
