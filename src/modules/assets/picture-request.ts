import { preferredType } from '../../core/http/representation/negotiation.ts';
import { parseQuery } from '../../core/http/query.ts';
import { variantWidths } from './limits.ts';

/** The size that a request asks for, in pixels; a picture fits into it. */
export interface PictureSize {
  readonly width: number | undefined;
  readonly height: number | undefined;
}

/** The size of a whole picture, as it is shown. */
interface WholePicture {
  readonly width: number;
  readonly height: number;
}

/**
 * The size in a query, such as `width=640` or `height=300`; undefined for a query without one, for
 * which a picture is sent as it was uploaded.
 */
export function sizeIn(query: string): PictureSize | undefined {
  // Most requests have no query, and most queries no size.
  if (!/(?:^|&)(?:width|height)=\d/.test(query)) return undefined;
  const numbers = new Map<string, number>();
  for (const { name, value } of parseQuery(query)) {
    if (!numbers.has(name) && /^[1-9]\d{0,5}$/.test(value)) numbers.set(name, Number(value));
  }
  const size = { width: numbers.get('width'), height: numbers.get('height') };
  return size.width === undefined && size.height === undefined ? undefined : size;
}

/**
 * The width of the variant that answers: the smallest of a few widths that fills the size, so that
 * ever new sizes make no new variants; at most that of the picture.
 */
export function variantWidth({ width, height }: PictureSize, whole: WholePicture): number {
  const byHeight = height === undefined ? Infinity : (height * whole.width) / whole.height;
  const asked = Math.min(width ?? Infinity, byHeight);
  return Math.min(variantWidths.find((one) => one >= asked) ?? Infinity, whole.width);
}

/** The formats of variants besides that of the picture, the smallest first. */
const modern = ['image/avif', 'image/webp'] as const;

/** The media type of a variant. */
export type PictureType = (typeof modern)[number] | 'image/jpeg' | 'image/png';

/** The types of pictures that have variants. */
const sources: ReadonlySet<string> = new Set([...modern, 'image/jpeg', 'image/png']);

/** Whether pictures of a type have variants; an animated GIF, and an SVG, have none. */
export function hasVariants(contentType: string): contentType is PictureType {
  return sources.has(contentType);
}

/**
 * The type of the variant for a client: AVIF or WebP if its Accept field names it (RFC 9110
 * §12.5.1), because clients that know neither accept everything, too; otherwise the own type.
 */
export function variantType(accept: string | undefined, own: PictureType): PictureType {
  const named = modern.filter((type) => accept?.includes(type) === true);
  const found = named.find((type) => preferredType(accept, [type]) !== undefined);
  return found ?? own;
}
