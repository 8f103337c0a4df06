/** Page rules that show an asset: those that asset.read lists, and asset.list for each asset. */
export const usesMax = 100;
export const shownUsesMax = 3;
/** Up to this number, the page rules that show an asset are counted. */
export const usesCountedMax = 1_000;
