import { extname } from 'node:path/posix';
import { contentType } from 'mime-types';

/**
 * The media type of a file by its extension, with a charset for text; `application/octet-stream`
 * for an unknown one.
 */
export function mediaType(name: string): string {
  const extension = extname(name);
  return (extension !== '' && contentType(extension)) || 'application/octet-stream';
}
