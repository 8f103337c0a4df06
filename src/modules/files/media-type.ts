import { basename, extname } from 'node:path/posix';
import { contentType } from 'mime-types';
import type { ExtensionType } from './section.ts';

/** Names that stand for an extension: Apple's devices ask for one without, and expect JSON. */
const namedExtensions = new Map([['apple-app-site-association', 'json']]);

function extensionOf(name: string): string {
  return namedExtensions.get(basename(name)) ?? extname(name).slice(1).toLowerCase();
}

/**
 * The media type of a file by its extension, with a charset for text: that of the mount's `types`,
 * or else the registered one; `application/octet-stream` for an unknown extension.
 */
export function mediaType(name: string, types: readonly ExtensionType[] = []): string {
  const extension = extensionOf(name);
  const own = types.find((one) => one.extension === extension)?.type;
  return (extension !== '' && contentType(own ?? extension)) || (own ?? 'application/octet-stream');
}
