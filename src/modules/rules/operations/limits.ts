const KIB = 1024;
const MIB = 1024 * KIB;

export const contentBytesMax = 16 * MIB;
export const enginedataBytesMax = MIB;
/** The `headers` of a rule. */
export const ruleHeadersBytesMax = 16 * KIB;
/** All fields of a rule except its content, including `_unknowns_` and `enginecomments`. */
export const ruleBytesMax = 4 * MIB;
/** A wildcard path is a key of LMDB, whose keys end at 1,978 bytes. */
export const wildcardPathBytesMax = KIB;
/** Times of page rules that one page of userinterface.times looks at. */
export const timesExaminedMax = 10_000;
/** The longest `timeout` of a page rule. */
export const fetchTimeoutMsMax = 24 * 3_600_000;
/** Access sections that page rules name and the ini file does not have, in warnings. */
export const missingSectionsMax = 100;
/** Page rules of such a section that a warning counts. */
export const closedRulesCountedMax = 1_000;
/** How long a subscriber to the moments of page rules waits before it reads the clock again. */
export const timeNoticeWaitMsMax = 60_000;
/** Page rules of one moment that a subscriber looks at; for more, it counts as concerned. */
export const timeNoticeRulesMax = 100;
