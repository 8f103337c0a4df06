/** The ways to share requests between several sources. */
export const balances = ['least', 'turn', 'cookie', 'address'] as const;

/**
 * How requests are shared between sources: to the one with the fewest open requests, in turn, or
 * those of one visitor to one source, by a cookie or by the address.
 */
export type Balance = (typeof balances)[number];
