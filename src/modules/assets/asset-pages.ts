import { whenReady } from '../../core/values/when-ready.ts';
import { createHash, hash } from 'node:crypto';
import { closeSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { createFileSource, readBytes } from '../../core/http/content/file-source.ts';
import { pageFields } from '../../core/http/content/page.ts';
import { type FieldList, type Reply, noBody, withVary } from '../../core/http/reply.ts';
import { isCompressible } from '../../core/http/representation/mediatype.ts';
import { type Representation, select } from '../../core/http/representation/represent.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { Failure } from '../../core/values/failure.ts';
import { MIB } from '../../core/values/units.ts';
import { withCodings } from '../compression/compressed-reply.ts';
import type { Compressors } from '../compression/compressors.ts';
import type { CompressiblePage } from '../compression/page-compressor.ts';
import { cachedFileBytesMax, compressedFileBytesMax } from '../files/limits.ts';
import type { StoredRule } from '../rules/rule.ts';
import type { AssetFiles } from './asset-files.ts';
import { assetSafetyFields } from './asset-type.ts';
import { type Asset, isDigest } from './asset.ts';
import type { MissingFiles } from './missing-files.ts';
import { hasVariants, sizeIn } from './picture-request.ts';
import type { Variants, WantedPicture } from './variants.ts';

/** Small files of assets in memory. */
const assetPagesBytesMax = 64 * MIB;

type AskedFor = Pick<ContentRequest, 'method' | 'fields' | 'query' | 'address'>;

/** Where the file of an asset is shown, and how. */
interface AssetView {
  readonly status: number;
  readonly contentType: string;
  readonly fields: FieldList;
  /** As in `Reply`. */
  readonly source: string;
}

/** Replies with the files of assets. */
export interface AssetPages {
  /**
   * The reply with the file of an asset; small files are in memory, and can be sent compressed.
   * Throws or rejects with `unavailable` if the file is not there.
   */
  respond(asset: Asset, view: AssetView, request: AskedFor): Reply | Promise<Reply>;
  /** The reply of a page rule that refers to an asset; without such an asset it is `not_found`. */
  respondFor(given: RuleAsset, request: AskedFor): Reply | Promise<Reply>;
  /** As respond, from the disk and without other sizes or codings: for nodes, which check it. */
  respondFromFile(asset: Asset, view: AssetView, request: AskedFor): Reply;
  memory(): CacheUse;
}

/** A page rule with the asset that it refers to. */
interface RuleAsset {
  readonly stored: StoredRule;
  readonly asset: Asset | undefined;
  readonly variesByLanguage: boolean;
}

/** Creates the replies. A file never changes, so a page in memory is never out of date. */
export function createAssetPages(
  files: Pick<AssetFiles, 'open'>,
  {
    compressors: { pages: compressor, responses },
    variants,
    missing,
  }: {
    readonly compressors: Compressors;
    readonly variants: Pick<Variants, 'find'>;
    /** Gets files that are not here; undefined for a server that has its own. */
    readonly missing?: Pick<MissingFiles, 'getSoon'> | undefined;
  },
): AssetPages {
  const known = new LRUCache<string, CompressiblePage>({
    maxSize: assetPagesBytesMax,
    sizeCalculation: ({ identity }) => identity.bytes.length + pageOverheadBytes,
  });

  const pageOf = shareLoads(async (key, { representation, source, sha256 }) => {
    const { descriptor, bytes: length } = openFile(files, sha256, representation.bytesLength);
    const file = createFileSource(descriptor);
    let bytes: Buffer | undefined;
    try {
      bytes = await readBytes(file, length);
    } finally {
      await file.close();
    }
    // A page in memory stays, so it has to be the right one. Variants have other names.
    const isRight = !isDigest(sha256) || (bytes && hash('sha256', bytes)) === sha256;
    if (bytes === undefined || !isRight) throw incomplete();
    const page = compressor.prepare({ representation, bytes }, { source });
    known.set(key, page);
    return page;
  });

  async function load(key: string, shown: ShownFile, request: AskedFor): Promise<Reply> {
    return { ...compressor.respond(await pageOf(key, shown), request), isReusable: true };
  }

  function replyWith(
    { sha256, bytes }: Asset,
    shown: AssetRepresentation,
    request: AskedFor,
  ): Reply | Promise<Reply> {
    const { representation, source } = shown;
    const key = `${source} ${representation.etag ?? ''}`;
    const page = known.get(key);
    if (page !== undefined) return { ...compressor.respond(page, request), isReusable: true };
    const compresses = isCompressible(representation.contentType);
    const max = compresses ? compressedFileBytesMax : cachedFileBytesMax;
    if (bytes <= max) return load(key, { ...shown, sha256 }, request);
    const reply = fromFile(files, { ...shown, sha256 }, request);
    return compresses ? withCodings(reply, request, responses) : reply;
  }

  const respond = withMissing(withVariants(withGuards(replyWith), variants), missing);

  return {
    respond,
    respondFor: (given, request) => respond(requireAsset(given), viewOfRule(given), request),
    respondFromFile: (asset, view, request) =>
      fromFile(files, { ...representationOf(asset, view), sha256: asset.sha256 }, request),
    memory: () => cacheUse('assets', known),
  };
}

/** Makes replies with the guards of what they show. */
function withGuards(
  respond: (asset: Asset, shown: AssetRepresentation, request: AskedFor) => Reply | Promise<Reply>,
): AssetPages['respond'] {
  return (asset, view, request) => {
    const shown = representationOf(asset, view);
    const { guards } = shown;
    return whenReady(respond(asset, shown, request), (reply) => ({ ...reply, guards }));
  };
}

type LoadPage = (key: string, shown: ShownFile) => Promise<CompressiblePage>;

/** All clients that want a file while it is read share one read of it. */
function shareLoads(load: LoadPage): LoadPage {
  const loading = new Map<string, Promise<CompressiblePage>>();
  return (key, shown) => {
    const page = loading.get(key) ?? load(key, shown).finally(() => loading.delete(key));
    loading.set(key, page);
    return page;
  };
}

type ShownFile = AssetRepresentation & { readonly sha256: string };

/**
 * Makes replies with a variant of a picture, if the query has a size; with the whole picture if
 * there is none. `respond` replies with a file as it is.
 */
function withVariants(
  respond: AssetPages['respond'],
  variants: Pick<Variants, 'find'>,
): AssetPages['respond'] {
  async function respondVaried(
    asset: Asset,
    found: Asset | undefined | Promise<Asset | undefined>,
    { wanted, view, request }: VariedRequest,
  ): Promise<Reply> {
    const variant = await found;
    if (variant === undefined) return respond(asset, view, request);
    try {
      return await respond(variant, { ...view, contentType: variant.contenttype }, request);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'unavailable') throw error;
      if (wanted.isGone === true) return respond(asset, view, request);
      // The folder of variants was full, and this one was not used for long: it is made again.
      const again = { ...wanted, isGone: true } as const;
      return respondVaried(asset, variants.find(asset, again), { wanted: again, view, request });
    }
  }

  return (asset, given, request) => {
    const size = sizeIn(request.query);
    const isOther = given.contentType !== asset.contenttype;
    if (size === undefined || isOther || !hasVariants(asset.contenttype)) {
      return respond(asset, given, request);
    }
    const view = { ...given, fields: withVary(given.fields, 'Accept') };
    const wanted = { size, accept: request.fields.accept, address: request.address };
    const found = variants.find(asset, wanted);
    if (found === undefined) return respond(asset, view, request);
    return respondVaried(asset, found, { wanted, view, request });
  };
}

/** Makes replies that get a missing or damaged file first. */
function withMissing(
  respond: AssetPages['respond'],
  missing: Pick<MissingFiles, 'getSoon'> | undefined,
): AssetPages['respond'] {
  if (missing === undefined) return respond;
  return async (asset, view, request) => {
    try {
      return await respond(asset, view, request);
    } catch (error) {
      const isMissing = error instanceof Failure && error.code === 'unavailable';
      if (!isMissing || !(await missing.getSoon(asset.sha256))) throw error;
      return respond(asset, view, request);
    }
  };
}

/** A request for a picture in another size, and how that is shown. */
interface VariedRequest {
  readonly wanted: WantedPicture;
  readonly view: AssetView;
  readonly request: AskedFor;
}

function requireAsset({ stored: { rule }, asset }: RuleAsset): Asset {
  if (asset !== undefined) return asset;
  const named = JSON.stringify(rule.asset ?? '');
  throw new Failure('not_found', `The page shows the asset ${named}, which does not exist.`);
}

function viewOfRule({ stored: { rule }, asset, variesByLanguage }: RuleAsset): AssetView {
  return {
    status: rule.httpresponse ?? 200,
    contentType: rule.contenttype ?? asset?.contenttype ?? '',
    fields: [
      ...(rule.lang === undefined ? [] : ['Content-Language', rule.lang]),
      ...(variesByLanguage ? ['Vary', 'Accept-Language'] : []),
    ],
    source: `rule:${rule.id}`,
  };
}

/** The memory of a page besides its content. */
const pageOverheadBytes = 2_048;

interface AssetRepresentation {
  readonly representation: Representation;
  readonly source: string;
  /** As in `Reply`. */
  readonly guards: FieldList;
}

function representationOf(
  { sha256, bytes, contenttype }: Asset,
  { status, contentType, fields, source }: AssetView,
): AssetRepresentation {
  // A rule may call an upload HTML, and an upload that is HTML something else.
  const safety = assetSafetyFields(contentType);
  const guards = [...(safety.length > 0 ? safety : assetSafetyFields(contenttype)), ...pageFields];
  const all = [...fields, ...guards];
  const described = { status, contentType, fields: all };
  const digest = createHash('sha256').update(JSON.stringify(described)).update(sha256);
  const etag = `"${digest.digest('base64url').slice(0, 22)}"`;
  const representation = { ...described, etag, lastModifiedMs: undefined, bytesLength: bytes };
  return { representation, source, guards };
}

function fromFile(
  files: Pick<AssetFiles, 'open'>,
  { representation, source, sha256 }: AssetRepresentation & { readonly sha256: string },
  request: AskedFor,
): Reply {
  const { descriptor } = openFile(files, sha256, representation.bytesLength);
  let isUsed = false;
  try {
    const { status, fields, parts, bytesLength } = select(representation, request);
    if (parts.length === 0) return { status, fields, body: noBody, source };
    isUsed = true;
    const file = createFileSource(descriptor);
    return { status, fields, body: { kind: 'file', file, parts, bytesLength }, source };
  } finally {
    if (!isUsed) closeSync(descriptor);
  }
}

/** Opens a file, which has to have the length that its asset says. Throws `unavailable`. */
function openFile(
  files: Pick<AssetFiles, 'open'>,
  sha256: string,
  bytesLength: number,
): { readonly descriptor: number; readonly bytes: number } {
  const opened = files.open(sha256);
  if (opened === undefined) {
    throw new Failure('unavailable', 'The file of this asset is not on this server.', {
      retryAfterSeconds: 60,
    });
  }
  if (opened.bytes === bytesLength) return opened;
  closeSync(opened.descriptor);
  throw incomplete();
}

function incomplete(): Failure {
  return new Failure('unavailable', 'The file of this asset is damaged on this server.', {
    retryAfterSeconds: 60,
  });
}
