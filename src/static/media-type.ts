import { contentType } from 'mime-types';
import { extname } from 'node:path/posix';

/**
 * The media type of a file by its extension, with the charset of text; `application/octet-stream`
 * when unknown.
 */
export function mediaType(name: string): string {
  const extension = extname(name);
  return (extension !== '' && contentType(extension)) || 'application/octet-stream';
}
