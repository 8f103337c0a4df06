import type { Conversion, Source } from '../conversion.ts';
import { addFields, type FieldWish } from '../sections.ts';
import type { NetlifySite } from './site.ts';

/** A path of `_headers` with its fields, or one table of `[[headers]]`. */
export interface NetlifyHeaders {
  readonly source: Source;
  readonly path: string;
  readonly fields: readonly FieldWish[];
}

/** Reads the lines of a `_headers`: a path, and below it fields that are indented. */
export function readHeaderBlocks(
  conversion: Conversion,
  lines: readonly string[],
): readonly NetlifyHeaders[] {
  const blocks: (NetlifyHeaders & { readonly fields: FieldWish[] })[] = [];
  for (const [at, text] of lines.entries()) {
    const source = { line: at + 1, text };
    if (/^\s*(?:#|$)/.test(text)) continue;
    if (/^\S/.test(text)) {
      blocks.push({ source, path: text.trim(), fields: [] });
      continue;
    }
    const field = readField(text.trim(), source);
    const block = blocks.at(-1);
    if (block === undefined) conversion.leave(source, 'a path before the fields');
    else block.fields.push(field);
  }
  return blocks;
}

/** `Name: value`, or `! Name` for a field that is removed. */
function readField(text: string, source: Source): FieldWish {
  if (text.startsWith('!')) return fieldOf(text.slice(1).trim(), '', source);
  const colon = text.indexOf(':');
  const name = colon === -1 ? text : text.slice(0, colon);
  return fieldOf(name.trim(), text.slice(name.length + 1).trim(), source);
}

/** A field of a fixed value. */
export function fieldOf(name: string, value: string, source: Source): FieldWish {
  return { name, template: value.replaceAll('${', () => '$${'), source };
}

/** Adds the fields of a path, or leaves them. */
export function addHeaderBlock(site: NetlifySite, { source, path, fields }: NetlifyHeaders): void {
  const { conversion } = site;
  const [, origin, rest = '/'] = /^(https?:\/\/[^/]+)?(\/.*)?$/.exec(path) ?? [];
  if (
    !/^(?:\/|https?:)/.test(path) ||
    /\/:[A-Za-z]/.test(rest) ||
    origin?.includes(':', 6) === true
  ) {
    conversion.leave(source, 'a [headers.<name>] whose `path` has a * in place of a placeholder');
    return;
  }
  const kept = fields.filter((field) => {
    if (field.name.toLowerCase() !== 'basic-auth') return true;
    conversion.leave(field.source, 'an `[access.<name>]` section with `password_file`');
    return false;
  });
  const place = origin === undefined ? site : { ...site, origins: [origin] };
  addFields(place, [rest], kept);
}
