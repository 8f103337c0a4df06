/** The name of an asset, in bytes of UTF-8. */
export const assetNameBytesMax = 255;

/**
 * Whether a text can be the name of an asset: segments that do not begin with a dot, and an
 * extension at the end, which tells it from the name of an operation.
 */
export function isAssetName(name: string): boolean {
  if (Buffer.byteLength(name) > assetNameBytesMax || !name.isWellFormed()) return false;
  // oxlint-disable-next-line no-control-regex -- control characters are what it refuses
  if (/[\0-\x1f\x7f\\]/.test(name) || !/\.[A-Za-z0-9]{1,16}$/.test(name)) return false;
  return name.split('/').every((segment) => segment !== '' && !segment.startsWith('.'));
}
