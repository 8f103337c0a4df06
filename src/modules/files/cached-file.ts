import type { DiskMount } from '../../core/config/config.ts';
import { undefinedIfForbiddenAsync } from '../../core/http/content/file-errors.ts';
import { type Coding, codings } from '../../core/http/representation/negotiation.ts';
import type { Fields } from '../../core/http/request.ts';
import type { Compressors } from '../compression/compressors.ts';
import { type RepresentationOptions, fitsInMemory, readFileContent } from './file-content.ts';
import type { CachedContent, LoadedContent, MountReplies } from './mount-replies.ts';
import {
  type LocatedFile,
  type Precompressed,
  choosePrecompressed,
  fileVersion,
  unusableReason,
} from './precompressed.ts';

/** The content of a path in memory: the file, and its precompressed files, if they are small. */
export interface CachedFile {
  /** The uncompressed file, or a listing; undefined for a large file. */
  readonly plain: CachedContent | undefined;
  readonly precompressed: Precompressed<CachedContent | UncachedFile> | undefined;
  /**
   * The versions of all these files together; undefined if one was written so recently that a later
   * change might leave its version the same.
   */
  readonly version: string | undefined;
}

/** A large precompressed file, which the server opens for each response. */
interface UncachedFile {
  readonly coding: Coding;
  readonly file: LocatedFile;
}

/** The representation of a path for a request; undefined for a large uncompressed file. */
export function chooseRepresentation(
  { plain, precompressed }: CachedFile,
  fields: Fields,
): CachedContent | UncachedFile | undefined {
  return choosePrecompressed(precompressed, fields) ?? plain;
}

/** The representation of a path for a request, if it is in memory. */
export function cachedContent(
  file: CachedFile | undefined,
  fields: Fields,
): CachedContent | undefined {
  const chosen = file && chooseRepresentation(file, fields);
  return chosen !== undefined && isInMemory(chosen) ? chosen : undefined;
}

/** Whether the bytes of a representation are in memory. */
export function isInMemory(content: CachedContent | UncachedFile): content is CachedContent {
  return 'identity' in content;
}

/** The bytes of content that a cached file holds in memory. */
export function cachedFileBytes({ plain, precompressed }: CachedFile): number {
  let bytes = plain?.identity.bytes.length ?? 0;
  for (const content of Object.values(precompressed ?? {})) {
    if (isInMemory(content)) bytes += content.identity.bytes.length;
  }
  return bytes;
}

/** The versions of a file and its precompressed files together, as in CachedFile. */
export function versionOfAll(
  file: LocatedFile,
  precompressed: Precompressed<LocatedFile> | undefined,
): string {
  let version = fileVersion(file.stats);
  for (const { relativePath, stats } of Object.values(precompressed ?? {})) {
    version += ` ${relativePath} ${fileVersion(stats)}`;
  }
  return version;
}

/** A mount, with the dependencies for reading and sending its files. */
export interface FileParts {
  readonly mount: DiskMount;
  readonly replies: MountReplies;
  readonly options: RepresentationOptions;
  readonly compressors: Compressors;
}

/** A file to be loaded, and what of it is in memory already. */
interface FileToLoad {
  readonly file: LocatedFile;
  readonly precompressed: Precompressed<LocatedFile> | undefined;
  readonly previous: CachedFile | undefined;
}

/**
 * Reads a file and its precompressed files into memory, if they are small; undefined if the file
 * itself does not exist any more, or changes faster than the server can read it. Leaves out
 * precompressed files that cannot be read, or that are older than the file. Fails as
 * readFileContent does for the file.
 */
export async function loadCachedFile(
  { mount, replies, options }: FileParts,
  { file, precompressed, previous }: FileToLoad,
): Promise<CachedFile | undefined> {
  const name = file.relativePath;
  const variant = precompressed === undefined ? 'only' : 'identity';
  const toRead = { relativePath: name, name, variant } as const;
  const isSmall = fitsInMemory(mount, file.stats, toRead);
  const loaded = isSmall ? await readFileContent(mount, toRead, options) : undefined;
  if (loaded === undefined && isSmall) return undefined;
  const isOnly = precompressed === undefined && previous?.precompressed === undefined;
  const cached: Partial<Record<Coding, CachedContent | UncachedFile>> = {};
  let isSettled = loaded === undefined || loaded.version !== undefined;
  for (const coding of codings) {
    const located = precompressed?.[coding];
    if (located === undefined) continue;
    const coded = { relativePath: located.relativePath, name, variant: coding };
    if (!fitsInMemory(mount, located.stats, coded)) {
      cached[coding] = { coding, file: located };
      continue;
    }
    const content = await undefinedIfForbiddenAsync(() => readFileContent(mount, coded, options));
    if (content === undefined || unusableReason(content, loaded ?? file) !== undefined) continue;
    if (content.version === undefined) isSettled = false;
    cached[coding] = replies.prepare(content, false);
  }
  return {
    plain:
      loaded &&
      (unchanged(isOnly ? previous?.plain : undefined, loaded) ??
        replies.prepare(loaded, precompressed === undefined)),
    precompressed: precompressed && cached,
    version: isSettled ? versionOfAll({ ...file, ...loaded }, precompressed) : undefined,
  };
}

/** The content in memory, with its compressed forms, if the loaded one has the same bytes. */
function unchanged(
  previous: CachedContent | undefined,
  { representation, version }: LoadedContent,
): CachedContent | undefined {
  if (previous?.identity.representation.etag !== representation.etag) return undefined;
  return previous && { ...previous, version };
}
