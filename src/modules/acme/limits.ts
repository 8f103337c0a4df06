const MIB = 1024 * 1024;

/** How long after each consecutive failure a certificate is ordered again. */
export const acmeRetryMs = [1, 5, 15, 60, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000);
/** The shortest time between a failure and an order by a restarted server. */
export const acmeRestartMs = 10 * 60_000;
/** How often certificates that are due are searched, even if the clock was changed. */
export const acmeCheckMs = 3_600_000;
/** How long an order may take as a whole. */
export const acmeOrderMs = 5 * 60_000;
/** The longest Retry-After of an ACME server that is obeyed. */
export const acmeRetryAfterMsMax = 7 * 86_400_000;
/** How long a connection to an ACME server, and one of its answers, may take. */
export const acmeConnectMs = 10_000;
export const acmeRequestMs = 30_000;
export const acmeAnswerBytesMax = MIB;
/** The first and the longest interval at which the state of an order is polled. */
export const acmePollMs = 1_000;
export const acmePollMsMax = 15_000;
/** Characters that are stored of an error message of an ACME server. */
export const acmeErrorCharactersMax = 500;
/** How often a certificate that was issued is stored again while the cluster cannot be reached. */
export const acmeSaveRetryMs = 1_000;
/** The time between two looks at the shared log for challenges that a node does not know. */
export const challengeCatchUpMs = 200;
/** How often a node tries to order while another one orders. */
export const acmeTurnPollMs = 5_000;
/** The extra pause of a node whose order failed, so that another node orders first. */
export const acmeYieldMs = 15_000;
/** The pause of a node after it could not order. */
export const acmeProblemMs = 60_000;
/** How long the suggestion of an ACME server when to renew holds: by default, and the limits. */
export const acmeInfoMs = 6 * 3_600_000;
export const acmeInfoMsMin = 60_000;
export const acmeInfoMsMax = 86_400_000;
/** A certificate is not renewed by such a suggestion sooner after its issue. */
export const acmeSuggestedMs = 86_400_000;
/** The wait after a failure that is never shortened, however soon the certificate ends. */
export const acmeRetryMsKept = 3_600_000;
/** How long a program that changes records may take, and how much of its complaints is read. */
export const dnsHookMs = 60_000;
export const dnsHookOutputBytesMax = 4_096;
/** How long a name server may take for a change, and for a question. */
export const dnsUpdateMs = 15_000;
export const dnsQueryMs = 2_000;
/** The longest answer of a name server. */
export const dnsAnswerBytesMax = 65_535;
/** How long the removal of a record may take when the server stops. */
export const dnsCleanupStoppedMs = 3_000;
/** How long an answer about a name on demand holds, and a missing one; and of how many names. */
export const permissionMs = 60_000;
export const permissionFailedMs = 10_000;
export const permissionsMax = 10_000;
/**
 * Questions about names on demand: at the same time, with the least time that one takes its place,
 * so that there are ten a second, and those that wait for a place.
 */
export const questionsAtOnceMax = 8;
export const questionHeldMs = 800;
export const questionsWaitingMax = 256;
/** How long a question may take. */
export const questionMs = 5_000;
/** Lines of the log about questions without an answer: one in this time. */
export const questionLogMs = 60_000;
/** How often the names that other processes want are read. */
export const onDemandPollMs = 2_000;
/** The period of `acme_on_demand_rate`. */
export const onDemandRateMs = 60_000;
/** A name is forgotten after so many failed orders in a row without a certificate. */
export const onDemandFailuresMax = 3;
/** How long a renewal waits for the answer whether it is still allowed. */
export const onDemandAskAgainMs = 3_600_000;
