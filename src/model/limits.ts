/**
 * Every limit that is not a value of the ini file (docs/design/failures.md#limits), each with its
 * unit in its name.
 */

const KIB = 1024;
const MIB = 1024 * KIB;

export const requestLineBytesMax = 8 * KIB;
export const headerBlockBytesMax = 32 * KIB;
export const headerFieldsMax = 100;
/** Empty lines before a request line, which a sloppy client may send behind its content. */
export const emptyLinesMax = 4;
/** The line before a chunk, extensions included, and all trailer fields of a message. */
export const chunkLineBytesMax = KIB;
export const trailerBytesMax = 8 * KIB;
export const headersTimeoutMs = 10_000;
export const requestTimeoutMs = 60_000;
export const keepAliveTimeoutMs = 75_000;
/** How often it is looked whether a request takes too long. */
export const requestLookMs = 1_000;
/** After how much silence the system asks whether the other end of a connection is there. */
export const tcpKeepAliveMs = 60_000;
export const connectionsMax = 10_000;
/** How long the log says no more of a limit that clients run into. */
export const limitLogMs = 60_000;
/** How long a client may take over the TLS handshake. */
export const tlsHandshakeTimeoutMs = 10_000;
/** Requests that a client of HTTP/2 may have open on a connection, and all clients together. */
export const http2ConcurrentStreamsMax = 100;
export const http2StreamsMax = 10_000;
/** Fields that the cookies of a request of HTTP/2 may come in, beside its others. */
export const http2CookieFieldsMax = 200;
/** Content of a request of HTTP/2 that may be on its way before somebody has read it. */
export const http2StreamWindowBytes = 64 * KIB;
/** Content of an answer that is handed to a stream at a time. */
export const http2WriteBytes = 64 * KIB;
/**
 * What a connection may hold for its streams, in 10^6 bytes: more than all of them may have at a
 * time, for Node counts what was handed to a stream that was reset as held from then on. When that
 * alone comes to so many bytes, no further request is taken on the connection.
 */
export const http2SessionMegabytesMax = 128;
export const http2LostBytesMax = 64 * MIB;
/** Frames that make no sense, and streams above those allowed, after which a connection ends. */
export const http2InvalidFramesMax = 100;
export const http2RejectedStreamsMax = 100;
/** Entries of a SETTINGS frame. */
export const http2SettingsMax = 32;
/** Within a time: requests that a client may take back, and PING and SETTINGS that it may send. */
export const http2CountingMs = 10_000;
export const http2ResetsMax = 200;
export const http2IdleFramesMax = 100;
/** How often is looked at what takes too long. */
export const http2LookMs = 5_000;
/** More than what goes out from one look to the next in answer to PING and SETTINGS alone. */
export const http2ControlBytesMax = 2 * KIB;
/** How long ago an answer may have ended that its client is given time to read at a stop. */
export const http2LeaveMs = 10_000;
/** How long after each failure in a row a certificate is asked for again (RFC 8555). */
export const acmeRetryMs = [1, 5, 15, 60, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000);
/** How soon after a failure a server that was started again may ask. */
export const acmeRestartMs = 10 * 60_000;
/** How often it is looked whether a certificate is due, whatever the clock did meanwhile. */
export const acmeLookMs = 3_600_000;
/** How long an order may take as a whole. */
export const acmeOrderMs = 5 * 60_000;
/** The longest that an ACME server may ask to wait. */
export const acmeRetryAfterMsMax = 7 * 86_400_000;
/** A connection to an ACME server, an answer, and how often it is asked how an order stands. */
export const acmeConnectMs = 10_000;
export const acmeRequestMs = 30_000;
export const acmeAnswerBytesMax = MIB;
export const acmePollMs = 1_000;
export const acmePollMsMax = 15_000;
/** Characters of what an ACME server says is wrong. */
export const acmeErrorCharactersMax = 500;
/** A PEM file: a certificate with its chain, or a key. */
export const certificateBytesMax = MIB;
export const rsaBitsMin = 2_048;
/** How long before the end of a certificate the log begins to warn of it, and how often. */
export const certificateWarnMs = 14 * 86_400_000;
export const certificateLookMs = 12 * 3_600_000;
export const rangesMax = 16;
/** Elements of an Accept, Accept-Language or Accept-Encoding field that are looked at. */
export const acceptElementsMax = 64;
/** Accept-Encoding fields whose meaning is remembered, and the longest of them. */
export const acceptEncodingsKnownMax = 64;
export const acceptEncodingCharactersMax = 256;
/**
 * Hops of a Forwarded or X-Forwarded-For field that are looked at, counted from the server's side.
 */
export const forwardedHopsMax = 32;

/**
 * Answers that are prepared to be sent again: all together, and to one URL. They hold for less than
 * a second, so more memory would be filled by URLs that nobody requests twice.
 */
export const preparedBytesMax = 8 * MIB;
export const preparedVariantsMax = 8;
/** Envelopes that anybody is answered with, kept for their compressed forms; and one's overhead. */
export const publicAnswersBytesMax = 64 * MIB;
export const publicAnswerBytes = 1_024;
/** Up to this length, copying content behind its head takes less time than a second write. */
export const preparedTextBytesMax = 16 * KIB;
/** Connections that are written to together: more would keep the first of them waiting. */
export const corkedConnectionsMax = 16;
/** The longest head of a request that is answered without Node's parser. */
export const directHeadBytesMax = 8 * KIB;
/** How long the head of an answer may wait for streamed content, to go out with its beginning. */
export const answerHeadHeldMs = 5;

/** Content of an answer that is handed to TLS at a time. */
export const tlsWriteBytes = 256 * KIB;
/** Several parts of a page go out as one piece up to this size. */
export const partsCopiedBytesMax = 64 * KIB;
/** One of the two buffers through which a file is sent … */
export const fileChunkBytes = 256 * KIB;
/** … what it is for a file of many such, as long as the buffers in use come to less than this … */
export const fileLargeChunkBytes = MIB;
export const fileLargeBuffersBytesMax = 64 * MIB;
/** … of which so many are kept for the next such file … */
export const fileSpareBuffersMax = 8;
/** … and what it is where those of all files that are being sent come to more than this. */
export const fileScarceChunkBytes = 16 * KIB;
export const fileBuffersBytesMax = 128 * MIB;

export const operationBodyBytesMax = 16 * MIB;
/** The body of an operation that only reads. */
export const questionBodyBytesMax = 256 * KIB;
/** A name of a form or query, dots included. */
export const memberNameCharactersMax = 1_024;
export const contentBytesMax = 16 * MIB;
export const enginedataBytesMax = MIB;
/** Everything of a rule but its content: `_unknowns_` and enginecomments included. */
export const ruleBytesMax = 4 * MIB;
export const unknownsMax = 256;
export const pathBytesMax = 4 * KIB;
/** A wildcard path is an ordered key of the store, whose keys end at 1,978 bytes. */
export const wildcardPathBytesMax = KIB;
export const originBytesMax = 512;
export const breadcrumbKeyCharactersMax = 512;
/** Seeds of visitors for percentages: too few to identify a visitor. */
export const visitorSeeds = 2 ** 20;
/** A set of keys (RFC 7517 §5). */
export const jwksBytesMax = MIB;
/** The longest method that is registered has 17. */
export const methodCharactersMax = 32;
export const tableCharactersMax = 128;
export const keyNameCharactersMax = 128;
export const vkCharactersMax = 256;
/** How deep a JSON value of a caller may nest before it is refused. */
export const jsonDepthMax = 64;

export const historyRowsDefault = 100;
export const historyRowsMax = 1_000;
/** Characters of one page of a history; a page ends early rather than hold more rows. */
export const historyCharactersMax = 8 * MIB;
export const listRowsDefault = 100;
export const listRowsMax = 1_000;
/** Characters of one page of a list; a page ends early rather than hold more. */
export const listCharactersMax = 8 * MIB;
/** How much is looked at for one page of a list, and how much of it without a pause: in rules. */
export const listExaminedMax = 200_000;
export const listSliceRules = 1_000;
/** Characters of a rule, or of a row of the log, that take as long to look at as a small one. */
export const ruleCharacters = 4 * KIB;
/** Records that the report of an invalidate tells of one by one; it counts the others. */
export const invalidateListedMax = 1_000;
/** Characters of a value that such a report shows. */
export const invalidateShownCharactersMax = 200;
/** Large invalidates and imports that may wait at the same time; they are done one by one. */
export const largeWritesWaitingMax = 4;
/** Rows of the log that an invalidate may look through in the middle of everything else. */
export const invalidateInlineRowsMax = 1_000;

export const socketFrameBytesMax = 16 * MIB;
export const socketRequestsInFlightMax = 64;
/**
 * Unsent bytes to a client that reads too slowly, after which its websocket is closed with 1013.
 */
export const socketBufferedBytesMax = 4 * MIB;
export const socketPingMs = 30_000;
/** How long a client may take over its own goodbye. */
export const socketCloseMs = 5_000;
/** Pings of a client between two of ours. */
export const socketPingsMax = 1_000;
/** Frames that one message may come in, and pieces of a frame that are kept until it is whole. */
export const socketFragmentsMax = 4_096;
export const socketPiecesMax = 16_384;
/** Characters, as JSON, of the id that every packet of a subscription repeats. */
export const subscriptionIdCharactersMax = 256;
/** Unsent bytes to a client after which its further changes wait in the log until it has read. */
export const subscriptionUnsentBytesMax = MIB;

/**
 * How long no byte may pass in either direction through a websocket that is passed on to a source,
 * and how exactly.
 */
export const tunnelIdleMs = 600_000;
export const tunnelLookMs = 60_000;
/** Content of a source that refuses a websocket, passed on whole, and how long it may take. */
export const refusedTunnelBytesMax = 64 * KIB;
export const refusedTunnelMs = 10_000;

/** How often the log is asked what other processes have written, while somebody waits for it. */
export const feedPollMs = 100;
/** How much of the log is read without a pause: rows, and about how many characters. */
export const feedSliceRowsMax = 64;
export const feedSliceCharactersMax = MIB;
/** Characters of the latest changes and their records, kept for those who come next. */
export const feedRememberedCharactersMax = 64 * MIB;

export const wrongKeysPerMinuteMax = 20;
/** Addresses whose wrong keys are remembered at the same time. */
export const wrongKeyAddressesMax = 10_000;
/** The highest rate that a key can be given, in operations a second. */
export const keyRateMax = 1_000_000;
/** Keys whose latest operations are remembered at the same time. */
export const keyRatesRemembered = 10_000;

export const commitBatchMax = 1_000;
/** About what a write transaction may hold before further changes go into the next one. */
export const commitBatchBytesMax = 64 * MIB;
/** Changes waiting for their commit, after which further ones are answered `unavailable`. */
export const commitQueueMax = 20_000;

/** Rows that an import writes in one transaction. */
export const importRowsMax = 100_000;
/** A line of an import: content in which each character takes six in JSON, and all else. */
export const importLineBytesMax = 6 * contentBytesMax + 2 * ruleBytesMax;
/** About how much of an import is read at once … */
export const importBlockBytes = MIB;
/** … and how much of it while something before it is being written. */
export const importAheadBytesMax = 32 * MIB;
/** Lines of a kind, refused ones and others, that the report of an import tells of one by one. */
export const refusalsKeptMax = 1_000;
/** Entries of the data that are verified without a pause. */
export const verifySliceEntries = 500;
/** Places where data is not what its log says, told one by one. */
export const differencesKeptMax = 1_000;

/** Hooks that there may be at a time. */
export const hooksMax = 10_000;
export const hookNameCharactersMax = 128;
export const hookUrlCharactersMax = 4_096;
/** Event types that one hook may name. */
export const hookEventsMax = 64;
export const hookPlaceCharactersMax = 253;
/** Characters of a header field that a hook adds. */
export const hookFieldCharactersMax = 4_096;
/** Everything of a hook, `_unknowns_` included. */
export const hookBytesMax = 64 * KIB;
export const hookRetriesMax = 1_000;
export const hookBatchEventsMax = 10_000;
export const hookBatchBytesMax = 16 * MIB;
export const hookBatchEveryMsMin = 1_000;
export const hookBatchEveryMsMax = 86_400_000;
/** How long the secret before the newest one goes on to sign. */
export const hookSecretOverlapMs = 86_400_000;
/** Attempts at one message that are told apart. */
export const attemptsMax = 65_535;
/** What is put into the queues of hooks without a pause: rows of the log, characters, entries. */
export const dispatchRowsMax = 1_000;
export const dispatchCharactersMax = 4 * MIB;
export const dispatchEntriesMax = 4_000;
/** Attempts that one page of a list looks at. */
export const deliveriesExaminedMax = 10_000;
/** Messages that are made due again without a pause, and that are counted without one. */
export const replayMessagesMax = 500;
export const replayCountedAtOnce = 2_000;
/** Messages that are let go without a pause, and how often it is looked for such. */
export const expiredAtOnceMax = 500;
export const retentionLookMs = 60_000;
/** Ids of which it is remembered that they have failed in this minute. */
export const detectedRememberedMax = 10_000;
/** Up to here it is counted how many messages of a hook are to be tried again. */
export const waitingCountedMax = 1_000;
/** Attempts that are under way at the same time, to all receivers together. */
export const deliveriesInFlightMax = 4_096;
/** Hooks whose queues are looked at without a pause. */
export const retentionQueuesAtOnce = 200;
/** How many of the messages that wait are looked at for the oldest one, from either end. */
export const oldestLookedMax = 16;
/** Events of a hook that are read before there is room for them. */
export const queuedReadMax = 64;
/** Longer waits are made of several. */
export const wakeMsMax = 3_600_000;
/** How long it takes until an attempt that could not be recorded is recorded again. */
export const recordAgainMs = 1_000;
/** How often the log is asked for what other processes have written: with hooks, and without. */
export const deliveryPollMs = 10;
export const deliveryIdlePollMs = 250;
/** How often a process that does not deliver looks whether another one still does. */
export const deliveryClaimMs = 1_000;
/** How often what is kept of hooks without anything to send is let go. */
export const deliveryTidyMs = 5_000;
/** How long what is under way to a hook may go on once that has changed, or is gone. */
export const deliverySettleMs = 1_000;
/** How long a change of a hook waits until what delivers has obeyed it, and how often it looks. */
export const obeyedMsMax = 5_000;
export const obeyedPollMs = 5;
/** Characters of the latest events, kept for the hooks that come next. */
export const eventTextsCharactersMax = 16 * MIB;
export const eventDataBytesMax = 256 * KIB;
export const eventCounterCharactersMax = 253;
/** Changes that one page of a list of events looks at, and how many of them without a pause. */
export const eventsExaminedMax = 20_000;
export const eventSliceRows = 500;

/** Requests that a client may send before it has read the answers to those before them. */
export const pipelinedRequestsMax = 100;
/** How long a client may leave an answer unread, or a connection of its own silent. */
export const stalledMs = 120_000;
/** Characters of the line of a request that could not be read, in the access log. */
export const refusedLineCharactersMax = 200;
/** Content of a request that nobody has asked for, read over to keep the connection. */
export const unreadBodyBytesMax = 64 * KIB;
/** How long a connection that has been said goodbye to may stay, for the client to read it. */
export const lingerMs = 1_000;
/** How long an answer is waited for on a connection that cannot be written to any more. */
export const answerBehindFailureMs = 100;
/** Informational answers of a source before the one that counts. */
export const informationalMax = 16;

/** How long after the end of a worker another one is started, at first and at most. */
export const workerRestartMs = 100;
export const workerRestartMsMax = 30_000;
/** A worker that lived this long did not end because it could not begin. */
export const workerSettledMs = 60_000;

/** How long a process waits for the metrics of the others that share its port. */
export const metricsWaitMs = 1_000;

export const stopGraceMs = 10_000;

export const configFileBytesMax = MIB;
export const tableSchemaBytesMax = MIB;
/** Header fields that a mount, a rule or a hook may add. */
export const customHeadersMax = 32;

/** How long an answer is believed at most whose source has not said how long (RFC 9111 §4.2.2). */
export const heuristicLifetimeMsMax = 86_400_000;
/** How long past its time a kept answer stands in for a source that cannot be reached. */
export const staleUnreachableMsMax = 3_600_000;
/** URLs of which it is remembered that their answers cannot be shared, and for how long. */
export const unsharedUrlsMax = 10_000;
export const unsharedMs = 120_000;
/** Answers kept for one URL, of different values of the fields that they vary by. */
export const answersPerUrlMax = 32;
/** Of a URL as a key of the cache's storage, whose keys end at 1,978 bytes. */
export const cacheUrlKeyCharactersMax = 1_800;
/** Purges that are remembered for what was asked for before them and comes after them. */
export const cacheJournalMax = 4_096;
/**
 * Of content on its way that may be kept, at hand before it goes to its file, and as much again for
 * as long as it has not got there; where all of it comes to so much, only a little of each.
 */
export const arrivingHeldBytesMax = MIB;
export const arrivingBytesMax = 64 * MIB;
export const arrivingScarceBytesMax = 64 * KIB;
/** In files of content that is still on its way, as often the longest content that is kept. */
export const arrivingFilesMax = 2;
/** How far one reader of content that is not kept may be behind another where there is no room. */
export const arrivingLagBytesMax = 4 * MIB;
/** Chunks of content on its way that are shorter are put together. */
export const arrivingPieceBytes = 16 * KIB;
/** Of a file that content is still written to, what a reader takes at a time. */
export const arrivingReadBytes = 128 * KIB;
/** Content up to this size is kept in the cache's database, larger content in a file of its own. */
export const cacheInlineBytesMax = 32 * KIB;
/** Content up to this size is sent from memory, larger content from its file. */
export const cacheHeldFileBytesMax = MIB;
/** Kept answers that a process has in memory. */
export const cacheHeldBytesMax = 32 * MIB;
/** How often the log is told at most that the cache cannot be written. */
export const cacheReportMs = 60_000;
/** How often it is noted that kept answers were used, and how exactly. */
export const cacheTouchMs = 5_000;
export const cacheTouchedSeconds = 60;
/** Kept answers that are let go of without a pause, where more is kept than may be. */
export const evictedAtOnceMax = 500;
/** URLs that a purge looks at without a pause. */
export const purgeSliceUrls = 500;
/** Values of the fields that answers vary by for which a source has confirmed the same one. */
export const selectingsPerAnswerMax = 16;

/**
 * Connections to one origin at a time, of one process: so many plain ones, and as many of undici's
 * for what those do not carry, and for what they have no place for.
 */
export const outboundConnectionsMax = 1_024;
/**
 * How long a plain connection may be idle, or how much shorter than the other side says that it
 * keeps it, and how often that is looked at.
 */
export const outboundIdleSeconds = 4;
export const outboundIdleMarginSeconds = 2;
export const outboundLookMs = 1_000;
/** How long an origin whose answer was not plain is left to undici, and how many are remembered. */
export const outboundNotPlainMs = 60_000;
export const outboundNotPlainOriginsMax = 10_000;
/** Content of another server that came with its header section, kept until somebody reads it. */
export const outboundUnreadBytesMax = 64 * KIB;
/** What is passed on before the buffers that it came in are collected. */
export const passedBytesPerCollection = 4 * MIB;
/** Sources of one page rule. */
export const fetchSourcesMax = 16;
/** How long one name server gets to answer, and how often each is asked. */
export const nameTryMs = 1_000;
export const nameTriesMax = 2;
/** How long the addresses of one family wait for those of the other. */
export const otherFamilyMs = 50;
/** Names whose addresses are remembered, and for how long at least and at most. */
export const namesRememberedMax = 10_000;
export const nameTrustMsMin = 1_000;
export const nameTrustMsMax = 60_000;
/** How long the hosts file is believed before it is read again. */
export const hostsTrustMs = 2_000;
/** Names that the system looks up at the same time: it takes a thread of four for each. */
export const systemLookupsMax = 2;
/** How much of the content of an answer is read of which only the beginning matters. */
export const briefContentBytesMax = 16 * KIB;
/** Lines of the access log may be held back until they are this many characters … */
export const accessHeldBackCharactersMax = 16 * KIB;
/** … or this old. */
export const accessFlushMs = 200;

/** The secret of a hook, as it is made. */
export const secretBytes = 32;
/** What Standard Webhooks allows a secret to be. */
export const secretBytesMin = 24;
export const secretBytesMax = 64;
/** The longest wait that a receiver can ask for: a day. */
export const retryAfterMsMax = 86_400_000;
/** Attempts that may be under way to a receiver of which nothing is known yet. */
export const laneWidthFirst = 4;
/** Refusals without a success between them that count as a receiver which fails. */
export const refusalsInARow = 8;
/** How long a hook whose only probe has failed rests before another event is tried … */
export const laneRestMs = 1_000;
/** … and, twice as long each time, at most. */
export const laneRestMsMax = 60_000;
/** How long a receiver can hold all of a hook by its Retry-After; the one message, a day. */
export const laneHoldMsMax = 3_600_000;
/** Hooks whose queues have a label of their own among the metrics. */
export const hooksMeasuredMax = 200;
/** How much of an answer a delivery reports, as text. */
export const reportedAnswerBytesMax = KIB;
