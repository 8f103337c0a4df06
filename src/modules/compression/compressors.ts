import { createPageCompressor, type PageCompressor } from './page-compressor.ts';
import { createResponseCompressor, type ResponseCompressor } from './response-compressor.ts';

/** The compressors of a process. */
export interface Compressors {
  /** Compresses pages in memory, once. */
  readonly pages: PageCompressor;
  /** Compresses answers while they are sent. */
  readonly responses: ResponseCompressor;
}

/** Creates them with the limits of a server. */
export function createCompressors(): Compressors {
  return { pages: createPageCompressor(), responses: createResponseCompressor() };
}
