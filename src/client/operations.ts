// Generated from the operations table by `npm run client`: do not edit.
// oxlint-disable typescript/consistent-type-definitions, typescript/consistent-indexed-object-style -- generated
// oxlint-disable typescript/array-type, typescript/no-redundant-type-constituents -- generated

/** Any value of JSON. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };

/** The schema NewPageRule of the API. */
export type NewPageRule = {
  /** scheme://host[:port], or * for every origin, which is the default. */
  readonly origin?: string;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path: string;
  /** How the rule answers requests for its path. */
  readonly kind?:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
  /** The table whose records the page shows or changes. */
  readonly table?: string;
  /** When it was designed, stored as UTC; in matching the newer one wins. */
  readonly designed_at?: string;
  /** A BCP 47 language tag. */
  readonly lang?: string;
  /** The body of the page. */
  readonly content?:
    | string
    | {
        /** Bytes in base64. */
        readonly base64: string;
      };
  /** The name of an asset, whose file is the body of a page without content. */
  readonly asset?: string;
  /** Its media type; by default text/html; charset=utf-8, or that of its asset. A text is sent as UTF-8, whatever charset it names. */
  readonly contenttype?: string;
  /** HTTP status. */
  readonly httpresponse?: number;
  /** Header fields of its answers, with variables such as ${path}: a text replaces the field, an empty one removes it, and a name that ends with [] adds one, such as "Link[]". */
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** The engine that renders the page in the browser. */
  readonly engine?: string;
  /** The settings of the kind or engine; enginereference documents an engine. */
  readonly enginedata?: { readonly [name: string]: Json };
  /** A note for the people who edit the rule. */
  readonly enginecomments?: string;
  /** In matching the higher one wins. */
  readonly rve?: number;
  /** A moment: the rule answers from it on. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly from?: string;
  /** A moment: the rule answers only before it. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly until?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
};

/** The schema WrittenPageRule of the API. */
export type WrittenPageRule = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** scheme://host[:port], or * for every origin, which is the default. */
  readonly origin: string;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path: string;
  /** How the rule answers requests for its path. */
  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
  /** The table whose records the page shows or changes. */
  readonly table?: string;
  /** When it was designed, stored as UTC; in matching the newer one wins. */
  readonly designed_at?: string;
  /** A BCP 47 language tag. */
  readonly lang?: string;
  /** The body of the page. */
  readonly content?:
    | string
    | {
        /** Bytes in base64. */
        readonly base64: string;
      };
  /** The name of an asset, whose file is the body of a page without content. */
  readonly asset?: string;
  /** Its media type; by default text/html; charset=utf-8, or that of its asset. A text is sent as UTF-8, whatever charset it names. */
  readonly contenttype?: string;
  /** HTTP status. */
  readonly httpresponse?: number;
  /** Header fields of its answers, with variables such as ${path}: a text replaces the field, an empty one removes it, and a name that ends with [] adds one, such as "Link[]". */
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** The engine that renders the page in the browser. */
  readonly engine?: string;
  /** The settings of the kind or engine; enginereference documents an engine. */
  readonly enginedata?: { readonly [name: string]: Json };
  /** A note for the people who edit the rule. */
  readonly enginecomments?: string;
  /** In matching the higher one wins. */
  readonly rve?: number;
  /** A moment: the rule answers from it on. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly from?: string;
  /** A moment: the rule answers only before it. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly until?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** URL of the documentation of its engine. */
  readonly enginereference?: string;
  /** JSON Schema of a row of its table. */
  readonly meta?: { readonly [name: string]: Json };
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Names of fields sent now that are not valid and wait in _unknowns_. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema Problem of the API. */
export type Problem = {
  /** The path to the mistake, such as headers.Host. */
  readonly field: string;

  readonly reason:
    | 'unknown_field'
    | 'wrong_type'
    | 'not_for_kind'
    | 'bad_format'
    | 'out_of_range'
    | 'unknown_engine'
    | 'missing'
    | 'no_row'
    | 'unreachable_private'
    | 'no_effect'
    | 'shadowed';

  readonly message: string;
  /** The nearest known name. */
  readonly suggestion?: string;
};

/** The schema PageRuleEdit of the API. */
export type PageRuleEdit = {
  readonly id: string;
  /** The write fails unless the record has this seq. */
  readonly if_seq?: number;

  readonly origin?: string | null;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path?: string;
  /** How the rule answers requests for its path. */
  readonly kind?:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';

  readonly table?: string | null;

  readonly designed_at?: string | null;

  readonly lang?: string | null;

  readonly content?:
    | (
        | string
        | {
            /** Bytes in base64. */
            readonly base64: string;
          }
      )
    | null;

  readonly asset?: string | null;

  readonly contenttype?: string | null;

  readonly httpresponse?: number | null;

  readonly headers?: { readonly [name: string]: string | readonly string[] } | null;

  readonly engine?: string | null;

  readonly enginedata?: { readonly [name: string]: Json } | null;

  readonly enginecomments?: string | null;

  readonly rve?: number | null;

  readonly from?: string | null;

  readonly until?: string | null;

  readonly _unknowns_?: { readonly [name: string]: Json } | null;
};

/** The schema PageRule of the API. */
export type PageRule = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** scheme://host[:port], or * for every origin, which is the default. */
  readonly origin: string;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path: string;
  /** How the rule answers requests for its path. */
  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
  /** The table whose records the page shows or changes. */
  readonly table?: string;
  /** When it was designed, stored as UTC; in matching the newer one wins. */
  readonly designed_at?: string;
  /** A BCP 47 language tag. */
  readonly lang?: string;
  /** The body of the page. */
  readonly content?:
    | string
    | {
        /** Bytes in base64. */
        readonly base64: string;
      };
  /** The name of an asset, whose file is the body of a page without content. */
  readonly asset?: string;
  /** Its media type; by default text/html; charset=utf-8, or that of its asset. A text is sent as UTF-8, whatever charset it names. */
  readonly contenttype?: string;
  /** HTTP status. */
  readonly httpresponse?: number;
  /** Header fields of its answers, with variables such as ${path}: a text replaces the field, an empty one removes it, and a name that ends with [] adds one, such as "Link[]". */
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** The engine that renders the page in the browser. */
  readonly engine?: string;
  /** The settings of the kind or engine; enginereference documents an engine. */
  readonly enginedata?: { readonly [name: string]: Json };
  /** A note for the people who edit the rule. */
  readonly enginecomments?: string;
  /** In matching the higher one wins. */
  readonly rve?: number;
  /** A moment: the rule answers from it on. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly from?: string;
  /** A moment: the rule answers only before it. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly until?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** URL of the documentation of its engine. */
  readonly enginereference?: string;
  /** JSON Schema of a row of its table. */
  readonly meta?: { readonly [name: string]: Json };
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
};

/** The schema History of the API. */
export type History = {
  readonly rows: readonly HistoryRow[];
  /** Send it as before to get the next page; null at the end. */
  readonly next: number | null;
};

/** The schema HistoryRow of the API. */
export type HistoryRow = {
  /** Position in the log. */
  readonly seq: number;
  /** Id of the transaction; rows of one import share it. */
  readonly txn: string;
  /** Id of the key, or name of the command, that wrote it. */
  readonly by: string;
  /** The automated tool that the key used. */
  readonly via?: ToolUse;

  readonly action: 'insert' | 'edit' | 'invalidate';

  readonly dtu_stored: string;

  readonly dtu_txn: string;
  /** The fields that it wrote; of an edit those that changed, null for a removed one. A header value that the record no longer has is *** without the scope design. */
  readonly data?: { readonly [name: string]: Json };
  /** When the row was invalidated. */
  readonly invalidated?: string;
  /** The data of an invalidated row. */
  readonly data_invalidated?: { readonly [name: string]: Json };
};

/** The schema ToolUse of the API. */
export type ToolUse = {
  /** Name and version of the client, as it gave them. */
  readonly client: string;
  /** The tool that it called. */
  readonly tool: string;
  /** Id of the conversation. */
  readonly conversation?: string;
};

/** The schema PageRuleList of the API. */
export type PageRuleList = {
  readonly rows: readonly ListedPageRule[];
  /** Send it as after to get the next page; null at the end. */
  readonly next: string | null;
};

/** The schema ListedPageRule of the API. */
export type ListedPageRule = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** scheme://host[:port], or * for every origin, which is the default. */
  readonly origin: string;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path: string;
  /** How the rule answers requests for its path. */
  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
  /** The table whose records the page shows or changes. */
  readonly table?: string;
  /** When it was designed, stored as UTC; in matching the newer one wins. */
  readonly designed_at?: string;
  /** A BCP 47 language tag. */
  readonly lang?: string;
  /** The name of an asset, whose file is the body of a page without content. */
  readonly asset?: string;
  /** Its media type; by default text/html; charset=utf-8, or that of its asset. A text is sent as UTF-8, whatever charset it names. */
  readonly contenttype?: string;
  /** HTTP status. */
  readonly httpresponse?: number;
  /** Header fields of its answers, with variables such as ${path}: a text replaces the field, an empty one removes it, and a name that ends with [] adds one, such as "Link[]". */
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** The engine that renders the page in the browser. */
  readonly engine?: string;
  /** The settings of the kind or engine; enginereference documents an engine. */
  readonly enginedata?: { readonly [name: string]: Json };
  /** A note for the people who edit the rule. */
  readonly enginecomments?: string;
  /** In matching the higher one wins. */
  readonly rve?: number;
  /** A moment: the rule answers from it on. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly from?: string;
  /** A moment: the rule answers only before it. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly until?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** URL of the documentation of its engine. */
  readonly enginereference?: string;
  /** JSON Schema of a row of its table. */
  readonly meta?: { readonly [name: string]: Json };
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Length of its content, which read shows. */
  readonly content_bytes?: number;
};

/** The schema InvalidateDryRun of the API. */
export type InvalidateDryRun = {
  readonly done: false;
  /** Number of records that would be affected. */
  readonly records: number;
  /** Number of rows of the log that would be invalidated. */
  readonly rows: number;
  /** Number of records that would be deleted. */
  readonly gone: number;
  /** Number of deleted records that would exist again. */
  readonly restored: number;
  /** Number of records that would change. */
  readonly changed: number;
  /** Ids of the first 1000 records. */
  readonly ids: readonly string[];

  readonly changes: readonly {
    readonly id: string;
    /** The path of a page rule. */
    readonly path?: string;

    readonly rows: readonly number[];

    readonly becomes: 'gone' | 'restored' | 'changed' | 'same';
    /** Each field that would change; of a long value only the start. */
    readonly fields: {
      readonly [name: string]: {
        readonly now: Json;

        readonly then: Json;
      };
    };
  }[];
  /** Records that were edited again since, with the seqs of those edits. */
  readonly conflicts: readonly {
    readonly id: string;

    readonly rows: readonly number[];

    readonly later: readonly LaterChange[];
  }[];
  /** Number of these records. */
  readonly conflicting: number;
  /** Number of records that are counted and not listed. */
  readonly unlisted: number;
  /** Send it as confirm to carry this out. */
  readonly digest: string;
};

/** The schema LaterChange of the API. */
export type LaterChange = {
  readonly seq: number;
  /** The author: the id of a key, or a command. */
  readonly by: string;

  readonly at: string;

  readonly action: 'insert' | 'edit' | 'invalidate';
  /** Those that it set. */
  readonly fields: readonly string[];
};

/** The schema InvalidateDone of the API. */
export type InvalidateDone = {
  readonly done: true;
  /** Its transaction, which can be invalidated. */
  readonly txn: string | null;
  /** Seq of its last row. */
  readonly seq: number | null;
  /** Number of records that were affected. */
  readonly records: number;
  /** Number of rows of the log that were invalidated. */
  readonly rows: number;
  /** Ids of the first 1000 records. */
  readonly ids: readonly string[];
  /** Number of records that are counted and not listed. */
  readonly unlisted: number;
};

/** The schema NewHook of the API. */
export type NewHook = {
  /** A name for people. */
  readonly name?: string;
  /** Event types such as sale.completed, or one of them; * means all types. */
  readonly event: readonly string[] | string;
  /** Absolute, http or https. */
  readonly url: string;
  /** POST by default. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'GET' | 'DELETE';
  /** Header fields of each request, besides those of the delivery. */
  readonly headers?: { readonly [name: string]: string };
  /** central, counters, or a node; by default the counter of the event, else central. */
  readonly where?: string;
  /** One request for each event, which is the default, or one for a batch of events. */
  readonly frequency?: Each | Batch;
  /** Members that the data of an event must have, with equal values. */
  readonly filter?: { readonly [name: string]: Json };
  /** The tables whose events it gets, of the events about records; userinterface, webhook and key are Waymark’s own. All tables by default. */
  readonly table?: readonly string[] | string;
  /** Whether a delivery waits until the one before it has ended. */
  readonly order?: boolean;
  /** Attempts before a delivery is given up; 10 by default. */
  readonly retry_limit?: number;
  /** Whether the hook delivers events; false pauses it. True by default. */
  readonly active?: boolean;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
};

/** The schema Each of the API. */
export type Each = {
  readonly mode: 'each';
};

/** The schema Batch of the API. */
export type Batch = {
  readonly mode: 'batch';
  /** No event waits longer than this, 1s to 24h; 60s by default. */
  readonly every?: string;
  /** In place of every: the times of the day at which batches are sent. */
  readonly at?: readonly string[];
  /** The time zone of at, such as Europe/Zurich; UTC by default. */
  readonly zone?: string;
  /** 500 by default. */
  readonly max_events?: number;
  /** No body is larger, unless one event is; 1MiB by default. */
  readonly max_bytes?: string | number;
};

/** The schema NewHookAnswer of the API. */
export type NewHookAnswer = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** A name for people. */
  readonly name?: string;
  /** Event types such as sale.completed, or one of them; * means all types. */
  readonly event: readonly string[] | string;
  /** Absolute, http or https. */
  readonly url: string;
  /** POST by default. */
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'GET' | 'DELETE';
  /** Header fields of each request, besides those of the delivery. */
  readonly headers: { readonly [name: string]: string };
  /** central, counters, or a node; by default the counter of the event, else central. */
  readonly where?: string;
  /** One request for each event, which is the default, or one for a batch of events. */
  readonly frequency: Each | Batch;
  /** Members that the data of an event must have, with equal values. */
  readonly filter: { readonly [name: string]: Json };
  /** The tables whose events it gets, of the events about records; userinterface, webhook and key are Waymark’s own. All tables by default. */
  readonly table?: readonly string[] | string;
  /** Whether a delivery waits until the one before it has ended. */
  readonly order: boolean;
  /** Attempts before a delivery is given up; 10 by default. */
  readonly retry_limit: number;
  /** Whether the hook delivers events; false pauses it. True by default. */
  readonly active: boolean;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** When its secret was replaced last. */
  readonly rotated_at?: string;
  /** Fields in _unknowns_ that pause the hook until they are corrected. */
  readonly waits?: readonly string[];
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Names of fields sent now that are not valid and wait in _unknowns_. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
  /** The key that signs deliveries, whsec_ and base64. Only this answer shows it. */
  readonly secret?: string;
};

/** The schema HookEdit of the API. */
export type HookEdit = {
  readonly id: string;
  /** The write fails unless the record has this seq. */
  readonly if_seq?: number;

  readonly name?: string | null;
  /** Event types such as sale.completed, or one of them; * means all types. */
  readonly event?: readonly string[] | string;
  /** Absolute, http or https. */
  readonly url?: string;

  readonly method?: ('POST' | 'PUT' | 'PATCH' | 'GET' | 'DELETE') | null;

  readonly headers?: { readonly [name: string]: string } | null;

  readonly where?: string | null;

  readonly frequency?: (Each | Batch) | null;

  readonly filter?: { readonly [name: string]: Json } | null;

  readonly table?: (readonly string[] | string) | null;

  readonly order?: boolean | null;

  readonly retry_limit?: number | null;

  readonly active?: boolean | null;

  readonly _unknowns_?: { readonly [name: string]: Json } | null;
};

/** The schema WrittenHook of the API. */
export type WrittenHook = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** A name for people. */
  readonly name?: string;
  /** Event types such as sale.completed, or one of them; * means all types. */
  readonly event: readonly string[] | string;
  /** Absolute, http or https. */
  readonly url: string;
  /** POST by default. */
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'GET' | 'DELETE';
  /** Header fields of each request, besides those of the delivery. */
  readonly headers: { readonly [name: string]: string };
  /** central, counters, or a node; by default the counter of the event, else central. */
  readonly where?: string;
  /** One request for each event, which is the default, or one for a batch of events. */
  readonly frequency: Each | Batch;
  /** Members that the data of an event must have, with equal values. */
  readonly filter: { readonly [name: string]: Json };
  /** The tables whose events it gets, of the events about records; userinterface, webhook and key are Waymark’s own. All tables by default. */
  readonly table?: readonly string[] | string;
  /** Whether a delivery waits until the one before it has ended. */
  readonly order: boolean;
  /** Attempts before a delivery is given up; 10 by default. */
  readonly retry_limit: number;
  /** Whether the hook delivers events; false pauses it. True by default. */
  readonly active: boolean;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** When its secret was replaced last. */
  readonly rotated_at?: string;
  /** Fields in _unknowns_ that pause the hook until they are corrected. */
  readonly waits?: readonly string[];
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Names of fields sent now that are not valid and wait in _unknowns_. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema Hook of the API. */
export type Hook = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** A name for people. */
  readonly name?: string;
  /** Event types such as sale.completed, or one of them; * means all types. */
  readonly event: readonly string[] | string;
  /** Absolute, http or https. */
  readonly url: string;
  /** POST by default. */
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'GET' | 'DELETE';
  /** Header fields of each request, besides those of the delivery. */
  readonly headers: { readonly [name: string]: string };
  /** central, counters, or a node; by default the counter of the event, else central. */
  readonly where?: string;
  /** One request for each event, which is the default, or one for a batch of events. */
  readonly frequency: Each | Batch;
  /** Members that the data of an event must have, with equal values. */
  readonly filter: { readonly [name: string]: Json };
  /** The tables whose events it gets, of the events about records; userinterface, webhook and key are Waymark’s own. All tables by default. */
  readonly table?: readonly string[] | string;
  /** Whether a delivery waits until the one before it has ended. */
  readonly order: boolean;
  /** Attempts before a delivery is given up; 10 by default. */
  readonly retry_limit: number;
  /** Whether the hook delivers events; false pauses it. True by default. */
  readonly active: boolean;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** When its secret was replaced last. */
  readonly rotated_at?: string;
  /** Fields in _unknowns_ that pause the hook until they are corrected. */
  readonly waits?: readonly string[];
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
};

/** The schema HookList of the API. */
export type HookList = {
  readonly rows: readonly Hook[];
  /** Send it as after to get the next page; null at the end. */
  readonly next: string | null;
};

/** The schema NewTable of the API. */
export type NewTable = {
  /** It never changes. */
  readonly name: string;
  /** JSON Schema 2020-12 of a row: an object, whose properties are the fields. */
  readonly schema?: { readonly [name: string]: Json };
  /** The field that identifies a row; its values are unique. */
  readonly key?: string;
  /** Fields that lists may filter and sort by. */
  readonly index?: readonly string[];
  /** Fields in which lists find text. */
  readonly search?: readonly string[];
  /** The field that stands for a row in other tables. */
  readonly title?: string;
  /** The field with the name of the user who owns a row. */
  readonly owner?: string;
  /** Who may read rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly read?: readonly string[];
  /** Who may insert rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly insert?: readonly string[];
  /** Who may edit and delete rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly edit?: readonly string[];
  /** The name of a form field that people leave empty. */
  readonly honeypot?: string;
  /** Events that changes of a field raise, by type. */
  readonly events?: { readonly [name: string]: Json };
  /** The URL of the data host that has the rows. */
  readonly host?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
};

/** The schema WrittenTable of the API. */
export type WrittenTable = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** It never changes. */
  readonly name: string;
  /** JSON Schema 2020-12 of a row: an object, whose properties are the fields. */
  readonly schema?: { readonly [name: string]: Json };
  /** The field that identifies a row; its values are unique. */
  readonly key?: string;
  /** Fields that lists may filter and sort by. */
  readonly index?: readonly string[];
  /** Fields in which lists find text. */
  readonly search?: readonly string[];
  /** The field that stands for a row in other tables. */
  readonly title?: string;
  /** The field with the name of the user who owns a row. */
  readonly owner?: string;
  /** Who may read rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly read?: readonly string[];
  /** Who may insert rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly insert?: readonly string[];
  /** Who may edit and delete rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly edit?: readonly string[];
  /** The name of a form field that people leave empty. */
  readonly honeypot?: string;
  /** Events that changes of a field raise, by type. */
  readonly events?: { readonly [name: string]: Json };
  /** The URL of the data host that has the rows. */
  readonly host?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** Whether the server still checks the rows after a change of the schema. */
  readonly rows_pending?: boolean;
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Names of fields sent now that are not valid and wait in _unknowns_. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema TableEdit of the API. */
export type TableEdit = {
  readonly id: string;
  /** The write fails unless the record has this seq. */
  readonly if_seq?: number;
  /** It never changes. */
  readonly name?: string;

  readonly schema?: { readonly [name: string]: Json } | null;

  readonly key?: string | null;

  readonly index?: readonly string[] | null;

  readonly search?: readonly string[] | null;

  readonly title?: string | null;

  readonly owner?: string | null;

  readonly read?: readonly string[] | null;

  readonly insert?: readonly string[] | null;

  readonly edit?: readonly string[] | null;

  readonly honeypot?: string | null;

  readonly events?: { readonly [name: string]: Json } | null;

  readonly host?: string | null;

  readonly _unknowns_?: { readonly [name: string]: Json } | null;
  /** The digest of a report, to carry the edit out. */
  readonly confirm?: string | null;
};

/** The schema SchemaChange of the API. */
export type SchemaChange = {
  readonly done: false;
  /** Number of rows of the table. */
  readonly rows: number;
  /** Number of rows with a value that would no longer be valid. */
  readonly invalid: number;

  readonly fields: { readonly [name: string]: number };
  /** The first of these rows. */
  readonly first: readonly {
    readonly id: string;

    readonly fields: readonly string[];
  }[];
  /** Send it as confirm to carry this out. */
  readonly digest: string;
};

/** The schema Table of the API. */
export type Table = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** It never changes. */
  readonly name: string;
  /** JSON Schema 2020-12 of a row: an object, whose properties are the fields. */
  readonly schema?: { readonly [name: string]: Json };
  /** The field that identifies a row; its values are unique. */
  readonly key?: string;
  /** Fields that lists may filter and sort by. */
  readonly index?: readonly string[];
  /** Fields in which lists find text. */
  readonly search?: readonly string[];
  /** The field that stands for a row in other tables. */
  readonly title?: string;
  /** The field with the name of the user who owns a row. */
  readonly owner?: string;
  /** Who may read rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly read?: readonly string[];
  /** Who may insert rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly insert?: readonly string[];
  /** Who may edit and delete rows: scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns). */
  readonly edit?: readonly string[];
  /** The name of a form field that people leave empty. */
  readonly honeypot?: string;
  /** Events that changes of a field raise, by type. */
  readonly events?: { readonly [name: string]: Json };
  /** The URL of the data host that has the rows. */
  readonly host?: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** Whether the server still checks the rows after a change of the schema. */
  readonly rows_pending?: boolean;
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
};

/** The schema TableList of the API. */
export type TableList = {
  readonly rows: readonly Table[];
  /** Send it as after to get the next page; null at the end. */
  readonly next: string | null;
};

/** The schema NewRow of the API. */
export type NewRow = {
  /** The name of the table. */
  readonly table: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
};

/** The schema WrittenRow of the API. */
export type WrittenRow = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** The name of the table. */
  readonly table: string;
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
  /** Names of fields sent now that are not valid and wait in _unknowns_. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema RowEdit of the API. */
export type RowEdit = {
  /** The name of the table. */
  readonly table: string;
  /** The id of the row; or in place of it, the key field of the table with its value. */
  readonly id?: string | null;
  /** The write fails unless the record has this seq. */
  readonly if_seq?: number;

  readonly _unknowns_?: { readonly [name: string]: Json } | null;
};

/** The schema Row of the API. */
export type Row = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** Fields that were sent and are not valid. They wait here until they are. */
  readonly _unknowns_?: { readonly [name: string]: Json };
  /** The name of the table. */
  readonly table: string;
  /** Version of the record, for if_seq and If-Match. */
  readonly seq: number;
};

/** The schema RowList of the API. */
export type RowList = {
  readonly rows: readonly Row[];
  /** Send it as after to get the next page; null at the end. */
  readonly next: string | null;
  /** The number of rows, if the input has count. */
  readonly count?: number;
  /** Whether there may be more rows. */
  readonly count_is_minimum?: boolean;
};

/** The schema ImportReport of the API. */
export type ImportReport = {
  /** False for a dry run. */
  readonly done: boolean;
  /** Number of lines that became a record, or would. */
  readonly imported: number;
  /** Number of lines whose record exists already. */
  readonly unchanged: number;
  /** Number of lines that cannot be imported; only a dry run has any. */
  readonly refused: number;
  /** The first of them, with the reasons. */
  readonly refusals: readonly {
    /** From 1. */
    readonly line: number;

    readonly why?: string;
  }[];
  /** Number of lines with a problem: an invalid value waits in _unknowns_, or a page rule is hidden by a file or another rule (of the first 1000 rules). */
  readonly kept: number;
  /** The first of them, with their problems. */
  readonly unknowns: readonly {
    /** From 1. */
    readonly line: number;

    readonly names?: readonly string[];
    /** What is wrong with the fields sent now, one entry for each mistake. */
    readonly problems?: readonly Problem[];
  }[];
  /** The transaction, for invalidate. */
  readonly txn: string | null;
};

/** The schema TableCounts of the API. */
export type TableCounts = {
  readonly rows: readonly {
    readonly name: string;
    /** Rows that this server has. */
    readonly rows: number;
  }[];
};

/** The schema CheckedRow of the API. */
export type CheckedRow = {
  /** Whether the server would refuse the write. */
  readonly refused: boolean;
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema ShownRow of the API. */
export type ShownRow = {
  /** A UUIDv7 that the server sets. */
  readonly id: string;
  /** The name of the table. */
  readonly table: string;
  /** Version of the row. */
  readonly seq: number;
  /** By field: the title of the row that its value refers to (x-table). */
  readonly _titles_?: { readonly [name: string]: Json };
};

/** The schema ShownRowList of the API. */
export type ShownRowList = {
  readonly rows: readonly ShownRow[];
  /** Send it as after to get the next page. */
  readonly next: string | null;
  /** The number of rows, if the input has count. */
  readonly count?: number;
  /** Whether there may be more rows. */
  readonly count_is_minimum?: boolean;
};

/** The schema TableSchema of the API. */
export type TableSchema = {
  readonly table: string;
  /** JSON Schema 2020-12. */
  readonly schema: { readonly [name: string]: Json };
  /** The field that identifies a row. */
  readonly key?: string;
  /** The field that stands for a row in other tables. */
  readonly title?: string;
  /** The field with the user of a row; the server sets it. */
  readonly owner?: string;
  /** The name of a form field that people leave empty. */
  readonly honeypot?: string;
  /** Fields to filter and sort by. */
  readonly index: readonly string[];
  /** Fields in which text is found. */
  readonly search: readonly string[];
  /** Whether the caller may read, insert and edit: all rows, or its own. */
  readonly may: {
    readonly read?: 'all' | 'own' | 'none';

    readonly insert?: 'all' | 'own' | 'none';

    readonly edit?: 'all' | 'own' | 'none';
  };
  /** By field with x-table: the table, its key, and the rows to choose from. */
  readonly references: { readonly [name: string]: Json };
  /** Version of the definition. */
  readonly seq: number;
};

/** The schema Explanation of the API. */
export type Explanation = {
  /** The outcome in a sentence. */
  readonly says: string;
  /** The request. Its path is the canonical one, which mounts and rules match; sent_path is what the source of a content.fetch rule gets under its *. */
  readonly request: { readonly [name: string]: Json };

  readonly winner: {
    readonly source: 'redirect' | 'rewrite' | 'disk' | 'stored' | 'content.fetch' | 'fallback';
    /** Name of a redirect of the ini file. */
    readonly redirect?: string;
    /** Name of a mount of the ini file. */
    readonly mount?: string;
    /** Name of a proxy of the ini file. */
    readonly proxy?: string;
    /** Id of a page rule. */
    readonly id?: string;
    /** HTTP status of the answer; null if only another server knows it. */
    readonly status: number | null;
  } | null;
  /** HTTP status of the answer; null if only another server knows it. */
  readonly status: number | null;
  /** The access rules of the place; a visitor must satisfy all of them. */
  readonly access?: readonly {
    /** Name of an access rule of the ini file. */
    readonly rule: string;
    /** Null if the input does not tell, as with a password. */
    readonly passes: boolean | null;
    /** HTTP status of the refusal. */
    readonly status?: number;

    readonly says: string;
  }[];

  readonly tried: readonly {
    readonly source: 'redirect' | 'rewrite' | 'disk' | 'stored' | 'content.fetch' | 'fallback';
    /** Key of the breadcrumb that was looked up. */
    readonly key?: string;

    readonly candidates: readonly {
      /** Name of a mount of the ini file. */
      readonly mount?: string;
      /** Name of a proxy of the ini file. */
      readonly proxy?: string;
      /** Name of a redirect of the ini file. */
      readonly redirect?: string;
      /** Name of a rewrite of the ini file. */
      readonly rewrite?: string;
      /** Id of a page rule. */
      readonly id?: string;

      readonly kind?:
        | 'content'
        | 'content.fetch'
        | 'resolve'
        | 'edit-record'
        | 'insert-record'
        | 'delete-record';

      readonly origin: string;

      readonly path: string;
      /** Why it does not answer; absent if it does, or leads on to the next key. */
      readonly lost?: {
        readonly code:
          | 'earlier_source'
          | 'earlier_redirect'
          | 'earlier_rewrite'
          | 'other_country'
          | 'other_language'
          | 'earlier_mount'
          | 'method'
          | 'other_origin'
          | 'other_path'
          | 'hidden_name'
          | 'no_file'
          | 'not_a_file'
          | 'not_a_folder'
          | 'no_index'
          | 'language_excluded'
          | 'any_origin'
          | 'wildcard'
          | 'shorter_wildcard'
          | 'proxy'
          | 'language'
          | 'lower_rve'
          | 'older_design'
          | 'older_insert'
          | 'not_yet'
          | 'ended'
          | 'waits';
        /** The reason as a sentence. */
        readonly says: string;
      };
      /** The branches of a breadcrumb that was followed, in order. */
      readonly branches?: readonly {
        /** when[0], when[1] and so on, or default. */
        readonly branch: string;
        /** The first condition that does not hold; absent if the branch is taken. */
        readonly lost?: {
          readonly code:
            | 'invalid'
            | 'earlier_branch'
            | 'user'
            | 'role'
            | 'country'
            | 'region'
            | 'city'
            | 'place'
            | 'ip'
            | 'lang'
            | 'device'
            | 'referer'
            | 'caller'
            | 'query'
            | 'after'
            | 'before'
            | 'percent';

          readonly says: string;
        };
      }[];
    }[];
    /** Number of further candidates. */
    readonly omitted?: number;
  }[];
  /** What changes the header fields of the answer, in order; absent for nothing. */
  readonly headers?: readonly string[];
  /** Further sentences about the answer. */
  readonly notes: readonly string[];
};

/** The schema PublicPageRule of the API. */
export type PublicPageRule = {
  readonly id: string;
  /** scheme://host[:port], or * for every origin, which is the default. */
  readonly origin: string;
  /** The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to 512 characters. */
  readonly path: string;
  /** How the rule answers requests for its path. */
  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
  /** The table whose records the page shows or changes. */
  readonly table?: string;
  /** When it was designed, stored as UTC; in matching the newer one wins. */
  readonly designed_at?: string;
  /** A BCP 47 language tag. */
  readonly lang?: string;
  /** The body of the page. */
  readonly content?:
    | string
    | {
        /** Bytes in base64. */
        readonly base64: string;
      };
  /** The name of an asset, whose file is the body of a page without content. */
  readonly asset?: string;
  /** Its media type; by default text/html; charset=utf-8, or that of its asset. A text is sent as UTF-8, whatever charset it names. */
  readonly contenttype?: string;
  /** HTTP status. */
  readonly httpresponse?: number;
  /** Header fields of its answers, with variables such as ${path}: a text replaces the field, an empty one removes it, and a name that ends with [] adds one, such as "Link[]". */
  readonly headers?: { readonly [name: string]: string | readonly string[] };
  /** The engine that renders the page in the browser. */
  readonly engine?: string;
  /** The settings of the kind or engine; enginereference documents an engine. */
  readonly enginedata?: { readonly [name: string]: Json };
  /** In matching the higher one wins. */
  readonly rve?: number;
  /** A moment: the rule answers from it on. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly from?: string;
  /** A moment: the rule answers only before it. A date-time with an offset, or the local time of a time zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone. */
  readonly until?: string;
  /** The part of the path that the * of the rule matches. */
  readonly capture?: string;
  /** URL of the documentation of its engine. */
  readonly enginereference?: string;
  /** JSON Schema of a row of its table. */
  readonly meta?: { readonly [name: string]: Json };
  /** Version of the record. */
  readonly seq: number;
};

/** The schema RenderInformation of the API. */
export type RenderInformation = {
  readonly id: string;

  readonly seq: number;
  /** The origin of the request, in canonical form. */
  readonly origin: string;
  /** The path of the request, in canonical form. */
  readonly path: string;
  /** The parameters of the query; a list for one that occurs more than once. */
  readonly query: { readonly [name: string]: string | readonly string[] };
  /** The part of the path that the * of the rule matches. */
  readonly capture: string | null;

  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';

  readonly lang: string | null;

  readonly engine: string | null;

  readonly enginedata: { readonly [name: string]: Json };
  /** URL of the documentation of the engine. */
  readonly enginereference: string | null;

  readonly table: string | null;
  /** JSON Schema of a row of the table; null for a rule without one. */
  readonly meta: { readonly [name: string]: Json } | null;
  /** The branch of enginedata.when that holds; only in a preview. */
  readonly matched?: string;
  /** The script of an engine of the ini file. */
  readonly script: string | null;
  /** The signed-in user. */
  readonly user: {
    readonly name: string;

    readonly roles: readonly string[];
  } | null;
};

/** The schema Resolution of the API. */
export type Resolution = {
  /** HTTP status of the visit. */
  readonly status: number;
  /** The target: an absolute URL, or a path on this site. */
  readonly target?: string;
  /** The content of a breadcrumb without a target. */
  readonly content?: string;
  /** Media type of the content. */
  readonly contenttype?: string;
  /** Id of the page rule that decided. */
  readonly id: string;
  /** The branch of it that decided: when[0], …, or default. */
  readonly matched: string;
};

/** The schema RotatedSecret of the API. */
export type RotatedSecret = {
  readonly id: string;
  /** Version of the hook. */
  readonly seq: number;
  /** The key that signs deliveries, whsec_ and base64. Only this answer shows it. */
  readonly secret?: string;
  /** Until when the former secret signs as well. */
  readonly previous_until?: string;
};

/** The schema TakenEvent of the API. */
export type TakenEvent = {
  /** The id of the event, which deliveries have, too. */
  readonly id: string;
  /** Position in the log; null at a counter, until the centre has stored it. */
  readonly seq: number | null;
  /** Number of hooks that get the event. */
  readonly hooks: number;
  /** Members of data that do not fit the schema in event.types. Hooks get them. */
  readonly unknowns: readonly string[];
  /** What is wrong with the fields sent now, one entry for each mistake. */
  readonly problems: readonly Problem[];
};

/** The schema Replay of the API. */
export type Replay = {
  /** Position of the request in the log. */
  readonly seq: number;
  /** Number of messages that are sent again. */
  readonly deliveries: number;
};

/** The schema DeliveryList of the API. */
export type DeliveryList = {
  readonly rows: readonly Attempt[];
  /** Send it as before to get the next page; null at the end. */
  readonly next: number | null;
  /** Number of messages without an attempt. */
  readonly queued: number;
  /** Number of messages that wait for another attempt, at most 1,000. */
  readonly waiting: number;
  /** The nodes that deliver the hook themselves, as each has reported last. */
  readonly nodes: readonly NodeQueue[];
};

/** The schema Attempt of the API. */
export type Attempt = {
  /** The id of the message, as its receiver gets it. */
  readonly id: string;
  /** Its number among the messages of the hook; of a batch, the first. */
  readonly seq: number;
  /** Of a batch, the last. */
  readonly last_seq?: number;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** When the attempt began. */
  readonly at: string;
  /** HTTP status of the answer, if there was one. */
  readonly status?: number;

  readonly outcome: 'completed' | 'completed_404' | 'failed' | 'exhausted';
  /** Why the attempt failed. */
  readonly error?: string;
  /** Its duration. */
  readonly ms: number;
  /** The first KiB of the answer’s content. */
  readonly answer?: string;
  /** When the next attempt begins, at the earliest; of the newest attempt only. */
  readonly next_attempt?: string;
};

/** The schema NodeQueue of the API. */
export type NodeQueue = {
  readonly node: string;

  readonly reported: string;
  /** The seq of its newest message. */
  readonly newest: number;
  /** Number of messages without an attempt. */
  readonly queued: number;
  /** Number of messages that wait for an attempt. */
  readonly waiting: number;

  readonly outcome?: 'completed' | 'completed_404' | 'failed' | 'exhausted' | 'frozen';
  /** When its newest attempt began. */
  readonly at?: string;
};

/** The schema Delivery of the API. */
export type Delivery = {
  /** The id of the message, as its receiver gets it. */
  readonly id: string;
  /** Its number among the messages of the hook; of a batch, the first. */
  readonly seq: number;
  /** Of a batch, the last. */
  readonly last_seq?: number;
  /** The content of its requests, or the beginning of it. */
  readonly body: string;
  /** Whether `body` lacks the rest. */
  readonly truncated: boolean;
  /** When the next attempt begins, at the earliest; of the newest attempt only. */
  readonly next_attempt?: string;
  /** The newest first. */
  readonly attempts: readonly DeliveryAttempt[];
};

/** The schema DeliveryAttempt of the API. */
export type DeliveryAttempt = {
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** When the attempt began. */
  readonly at: string;
  /** HTTP status of the answer, if there was one. */
  readonly status?: number;

  readonly outcome: 'completed' | 'completed_404' | 'failed' | 'exhausted';
  /** Why the attempt failed. */
  readonly error?: string;
  /** Its duration. */
  readonly ms: number;
  /** Method of the request. */
  readonly method?: string;
  /** URL of the request. */
  readonly url?: string;
  /** Header fields of the request; values that may be secret are ***. */
  readonly headers?: readonly {
    readonly name: string;

    readonly value: string;
  }[];
  /** The first header fields of the answer, in the same way. */
  readonly answer_headers?: readonly {
    readonly name: string;

    readonly value: string;
  }[];
  /** The first 4 KiB of the answer’s content. */
  readonly answer?: string;
};

/** The schema HookHealthList of the API. */
export type HookHealthList = {
  readonly rows: readonly HookHealth[];
  /** The after of the next page. */
  readonly next: string | null;
};

/** The schema HookHealth of the API. */
export type HookHealth = {
  readonly id: string;

  readonly name?: string;

  readonly url: string;

  readonly method: string;

  readonly event: readonly string[];
  /** failing if its newest attempt failed, idle if there is none. */
  readonly state: 'idle' | 'healthy' | 'failing' | 'paused';
  /** Number of its newest message; 0 for none. */
  readonly seq: number;
  /** Number of messages without an attempt. */
  readonly queued: number;
  /** Number of messages that wait for a retry. */
  readonly waiting: number;
  /** When its oldest undelivered event was stored. */
  readonly oldest?: string;
  /** Its attempts at the newest messages, at most 20. */
  readonly recent: {
    readonly attempts: number;

    readonly failed: number;
    /** Their median duration. */
    readonly ms: number;
  };
  /** The newest of these attempts. */
  readonly last?: {
    /** The number of the attempt, from 1. */
    readonly attempt?: number;
    /** When the attempt began. */
    readonly at?: string;
    /** HTTP status of the answer, if there was one. */
    readonly status?: number;

    readonly outcome?: 'completed' | 'completed_404' | 'failed' | 'exhausted';
    /** Why the attempt failed. */
    readonly error?: string;
    /** Its duration. */
    readonly ms?: number;
  };
};

/** The schema NewEvent of the API. */
export type NewEvent = {
  /** Such as sale.completed: dotted, in lower case. */
  readonly type: string;
  /** The data that receivers get. */
  readonly data?: { readonly [name: string]: Json };
  /** The current time by default. */
  readonly occurred_at?: string;
  /** The trading counter at which it happened. */
  readonly counter?: string;
};

/** The schema Event of the API. */
export type Event = {
  readonly id: string;

  readonly type: string;

  readonly occurred_at: string;

  readonly counter: string | null;

  readonly data: { readonly [name: string]: Json };
  /** Position in the log. */
  readonly seq: number;
};

/** The schema EventList of the API. */
export type EventList = {
  readonly rows: readonly Event[];
  /** Send it as before to get the next page; null at the end. */
  readonly next: number | null;
};

/** The schema EventTypes of the API. */
export type EventTypes = {
  readonly rows: readonly EventType[];
};

/** The schema EventType of the API. */
export type EventType = {
  readonly type: string;
  /** When the event occurs. */
  readonly summary: string;
  /** Whether Waymark raises events of the type itself. */
  readonly own: boolean;

  readonly schema: { readonly [name: string]: Json };
};

/** The schema PurgedAnswers of the API. */
export type PurgedAnswers = {
  /** Number of URLs with stored responses. */
  readonly urls: number;
};

/** The schema CacheListPage of the API. */
export type CacheListPage = {
  readonly rows: readonly CacheListRow[];
  /** Send it as after to get the next page; null at the end. */
  readonly next: string | null;
};

/** The schema CacheListRow of the API. */
export type CacheListRow = {
  /** As a client sent it. */
  readonly url: string;
  /** The id of the page rule that fetched them. */
  readonly rule: string | null;

  readonly status: number;

  readonly contenttype?: string;

  readonly bytes: number;

  readonly age_seconds: number;
  /** How long it stays fresh; below 0, how long it has been stale. */
  readonly fresh_seconds: number;

  readonly vary: readonly string[];
  /** The stored part of the content: first-last/length. */
  readonly range?: string;
};

/** The schema CacheStatus of the API. */
export type CacheStatus = {
  readonly answers: number;

  readonly urls: number;

  readonly bytes: number;

  readonly bytes_max: number;
};

/** The schema NewKey of the API. */
export type NewKey = {
  readonly id: string;

  readonly name: string;

  readonly scopes: readonly string[];

  readonly created: string;
  /** Operations a second that it may call. */
  readonly rate?: number;
  /** The node that may use it for the scope follow. */
  readonly node?: string;
  /** What it is bound to. */
  readonly origins?: readonly string[];
  /** What it is bound to. */
  readonly paths?: readonly string[];
  /** The key itself. Only this answer shows it. */
  readonly key: string;
};

/** The schema KeyList of the API. */
export type KeyList = {
  readonly rows: readonly Key[];
};

/** The schema Key of the API. */
export type Key = {
  readonly id: string;

  readonly name: string;

  readonly scopes: readonly string[];

  readonly created: string;
  /** Operations a second that it may call. */
  readonly rate?: number;
  /** The node that may use it for the scope follow. */
  readonly node?: string;
  /** What it is bound to. */
  readonly origins?: readonly string[];
  /** What it is bound to. */
  readonly paths?: readonly string[];
  /** When this node last got a request or a message of a websocket with the key or a session of it. The uses that other workers of the node got may be a minute late. */
  readonly last_used: string | null;
};

/** The schema RevokedKey of the API. */
export type RevokedKey = {
  readonly id: string;

  readonly revoked: true;
};

/** The schema ServerStatus of the API. */
export type ServerStatus = {
  readonly version: string;

  readonly started: string;
  /** Position of the newest change in the log. */
  readonly seq: number;

  readonly configuration: {
    /** When the configuration in use was read. */
    readonly since: string;
    /** broken if the ini file has changed and cannot be used. */
    readonly state: 'current' | 'broken';
    /** Settings that have changed in the file and need a restart. */
    readonly restart_needed: readonly string[];

    readonly problems: readonly {
      readonly file: string;

      readonly line: number;

      readonly message: string;
    }[];
  };

  readonly node: {
    /** The log that this node shares with others; null without a cluster. */
    readonly cluster: {
      readonly connected: boolean;
      /** Why it is not connected. */
      readonly problem?: string;
      /** How far the node has applied the log. */
      readonly position: number;
    } | null;

    readonly role: string;

    readonly name: string;
    /** The node whose log this one follows; null for a node with a log of its own. */
    readonly central: {
      readonly url: string;

      readonly connected: boolean;

      readonly since?: string;
      /** Why it is not connected. */
      readonly problem?: string;
      /** Entries that wait for the centre, and that it has refused. */
      readonly outbox: {
        readonly waiting: number;

        readonly refused: number;
        /** Bytes of both. */
        readonly bytes: number;
        /** The most of both: outbox_entries. */
        readonly entries_max: number;
        /** The most bytes of both: outbox_size. */
        readonly bytes_max: number;
      };
    } | null;
  };

  readonly certificates: readonly {
    /** The section of the ini file. */
    readonly section: string;

    readonly names: readonly string[];

    readonly issuer: string | null;

    readonly valid_until: string | null;
    /** Why the server does not use the present files; null if it does. */
    readonly problem: string | null;
    /** The state at the ACME server that issues the certificate. */
    readonly acme: {
      readonly state: 'obtaining' | 'valid' | 'failed';

      readonly since: string;
      /** Number of failed orders in a row. */
      readonly failures: number;
      /** When the server orders it again. */
      readonly next: string | null;

      readonly error: string | null;
      /** In a cluster, the machine that has ordered last. */
      readonly node?: string;
    } | null;
  }[];
  /** Memory of the process that answers, and of each of its caches. */
  readonly memory: {
    readonly resident_bytes: number;
    /** Used part of V8's heap. */
    readonly heap_bytes: number;
    /** Buffers outside V8's heap. */
    readonly external_bytes: number;

    readonly caches: readonly {
      readonly name: string;

      readonly entries: number;

      readonly bytes: number;

      readonly bytes_max: number;
    }[];
  };

  readonly webhooks: {
    readonly paused: number;
    /** Number of hooks that are paused because a field is not valid. */
    readonly waiting: number;
    /** Number of hooks that no known node executes. */
    readonly without_node: number;
    /** The address that deliveries come from; null if the system chooses it. */
    readonly local_address: string | null;
  };
  /** Indexes of tables that the server builds; lists cannot use them yet. */
  readonly indexes: readonly {
    readonly table: string;
    /** null for the text search. */
    readonly field: string | null;
    /** Rows that are in it. */
    readonly done: number;
    /** Rows when the build began. */
    readonly of: number;
  }[];
  /** Tables whose rows are checked after a change of the schema. */
  readonly row_checks: readonly {
    readonly table: string;
    /** Rows that are checked. */
    readonly checked: number;
    /** Rows when the check began. */
    readonly of: number;
    /** Rows that were changed. */
    readonly moved: number;
  }[];
  /** The data hosts of tables; of several processes that share the ports, one has them. */
  readonly hosts: readonly {
    readonly table: string;
    /** Its URL. */
    readonly host: string;
    /** other_node if another node of the cluster follows it. */
    readonly state: 'connecting' | 'connected' | 'waiting' | 'other_node';

    readonly since: string;
    /** Why there is no connection. */
    readonly problem: string | null;
    /** The seq of the host up to which its changes have raised events. */
    readonly seq: number | null;
  }[];

  readonly counts: {
    readonly rules: number;

    readonly keys: number;

    readonly hooks: number;

    readonly tables: number;
    /** Rows of all tables. */
    readonly rows: number;
    /** Size of the data file. */
    readonly bytes: number;
  };
};

/** The schema ServerConfiguration of the API. */
export type ServerConfiguration = {
  /** The path of the ini file, or of the folder served. */
  readonly file: string;
  /** When it was read. */
  readonly since: string;
  /** broken if the file has changed and cannot be used. */
  readonly state: 'current' | 'broken';
  /** Changed settings that need a restart. */
  readonly restart_needed: readonly string[];
  /** Why the present file cannot be used. */
  readonly problems: readonly {
    readonly file: string;

    readonly line: number;

    readonly message: string;
  }[];
  /** Settings that have no effect. */
  readonly warnings: readonly string[];

  readonly sections: readonly ConfigurationSection[];
};

/** The schema ConfigurationSection of the API. */
export type ConfigurationSection = {
  readonly section: string;
  /** The file that has it; null for none. */
  readonly file: string | null;
  /** Null for a section that no file has. */
  readonly line: number | null;

  readonly keys: readonly ConfigurationKey[];
};

/** The schema ConfigurationKey of the API. */
export type ConfigurationKey = {
  readonly key: string;
  /** Empty without a value; a variable stays ${NAME}. */
  readonly values: readonly string[];
  /** The line that sets it; null for a default. */
  readonly line: number | null;
};

/** The schema SourceList of the API. */
export type SourceList = {
  readonly rows: readonly Source[];
};

/** The schema Source of the API. */
export type Source = {
  readonly origin: string;
  /** Requests since the server started. */
  readonly requests: number;
  /** Requests without an answer. */
  readonly failed: number;
  /** Answers with a status of 500 or more. */
  readonly server_errors: number;

  readonly open_requests: number;
  /** Open connections, also those without a request. */
  readonly connections: number;
  /** Whether it has failed, so that other sources of its rules get the requests. */
  readonly set_aside: boolean;
  /** Why its health check fails; null if it passes, or there is none. */
  readonly check_problem: string | null;
  /** Half of the answers began within this time. */
  readonly p50_ms: number | null;
  /** Null without answers in the last minutes. */
  readonly p99_ms: number | null;

  readonly last_error: {
    readonly message: string;

    readonly at: string;
  } | null;
};

/** The schema Session of the API. */
export type Session = {
  readonly scopes: readonly string[];
};

/** The schema Unsubscribed of the API. */
export type Unsubscribed = { readonly [name: string]: Json };

/** The schema NewSession of the API. */
export type NewSession = {
  /** Id of the session. */
  readonly id: string;
  /** Id of the key that it was made with. */
  readonly key: string;
  /** Name of that key. */
  readonly name: string;

  readonly created: string;

  readonly expires: string;
  /** What it is bound to. */
  readonly origins?: readonly string[];
  /** What it is bound to. */
  readonly paths?: readonly string[];

  readonly scopes: readonly string[];
  /** Send it as apikey. Only this answer shows it. */
  readonly token: string;
};

/** The schema CurrentSession of the API. */
export type CurrentSession = {
  /** Id of the session. */
  readonly id?: string;
  /** Id of the key that it was made with. */
  readonly key?: string;
  /** Name of that key. */
  readonly name?: string;

  readonly created?: string;

  readonly expires?: string;
  /** What it is bound to. */
  readonly origins?: readonly string[];
  /** What it is bound to. */
  readonly paths?: readonly string[];

  readonly scopes: readonly string[];
  /** The path where people sign in to the console by [login]. */
  readonly sign_in?: string;
};

/** The schema SessionList of the API. */
export type SessionList = {
  readonly rows: readonly {
    /** Id of the session. */
    readonly id?: string;
    /** Id of the key that it was made with. */
    readonly key?: string;
    /** Name of that key. */
    readonly name?: string;

    readonly created?: string;

    readonly expires?: string;
  }[];
};

/** The schema EndedSession of the API. */
export type EndedSession = {
  readonly id: string;

  readonly ended: true;
};

/** The schema LoginList of the API. */
export type LoginList = {
  readonly rows: readonly Login[];
  /** The `after` of the next rows, if any. */
  readonly next: string | null;
};

/** The schema Login of the API. */
export type Login = {
  readonly id: string;

  readonly user: string;

  readonly roles: readonly string[];

  readonly created: string;

  readonly expires: string;
};

/** The schema EndedLogin of the API. */
export type EndedLogin = {
  readonly id: string;

  readonly ended: true;
};

/** The schema MetricsSeries of the API. */
export type MetricsSeries = {
  readonly from: string;

  readonly until: string;
  /** The distance of points. */
  readonly step_ms: number;

  readonly points: readonly {
    /** The start of the point. */
    readonly time: string;
    /** Responses of the site, without those of /svc1. */
    readonly requests: number;
    /** Responses of the site by status class. */
    readonly status: {
      readonly '1xx'?: number;

      readonly '2xx'?: number;

      readonly '3xx'?: number;

      readonly '4xx'?: number;

      readonly '5xx'?: number;
    };

    readonly sources: {
      readonly disk?: number;

      readonly rule?: number;

      readonly none?: number;

      readonly svc1?: number;
    };
    /** Null without responses. */
    readonly p50_ms: number | null;
    /** Null without responses. */
    readonly p99_ms: number | null;
    /** Requests for fetched content, and those that the cache answered. */
    readonly cache: {
      readonly hits?: number;

      readonly requests?: number;
    };
    /** Bytes of content of all responses. */
    readonly bytes: number;
    /** Attempts at deliveries of webhooks. */
    readonly hooks: {
      readonly completed?: number;

      readonly failed?: number;
    };
  }[];
};

/** The schema BreadcrumbVisits of the API. */
export type BreadcrumbVisits = {
  /** The first day, in UTC. */
  readonly from: string;
  /** The last day. */
  readonly until: string;
  /** `[stats] retention`; 0 if nothing is counted. */
  readonly retention_days: number;

  readonly visits: number;
  /** Visits of robots, which `visits` does not contain. */
  readonly robots: number;
  /** Each day, also those without visits. */
  readonly days: readonly {
    readonly day: string;

    readonly visits: number;
    /** Visits of robots, which `visits` does not contain. */
    readonly robots: number;
    /** Visits by branch, of one key. */
    readonly branches?: { readonly [name: string]: number };
  }[];
  /** when[0] and so on, or default. */
  readonly branches: readonly {
    readonly name: string;

    readonly visits: number;
  }[];
  /** ISO 3166-1 codes, or (unknown). */
  readonly countries: readonly {
    readonly name: string;

    readonly visits: number;
  }[];
  /** mobile, tablet, desktop or (unknown). */
  readonly devices: readonly {
    readonly name: string;

    readonly visits: number;
  }[];
  /** The hosts of the pages with the link, or (none). */
  readonly hosts: readonly {
    readonly name: string;

    readonly visits: number;
  }[];
  /** The most visited breadcrumbs; absent if the input names one. */
  readonly keys?: readonly {
    /** Empty for all above the limit of a day. */
    readonly k: string;

    readonly origin: string;

    readonly visits: number;
    /** Visits of robots, which `visits` does not contain. */
    readonly robots: number;
  }[];
};

/** The schema ChangeList of the API. */
export type ChangeList = {
  readonly rows: readonly {
    /** Position in the log. */
    readonly seq: number;
    /** Id of the transaction. */
    readonly txn: string;
    /** Id of the key, or name of the command. */
    readonly by: string;
    /** Name of the key, for the scope admin. */
    readonly by_name?: string;
    /** The automated tool that the key used. */
    readonly via?: ToolUse;

    readonly action: 'insert' | 'edit' | 'invalidate';

    readonly family: 'userinterface' | 'webhook' | 'key';
    /** Id of the record. */
    readonly id: string;
    /** The path of the rule, or the name. */
    readonly title?: string;

    readonly dtu_stored: string;
    /** What it wrote. */
    readonly fields: readonly string[];
    /** False for a row that was invalidated. */
    readonly applies: boolean;
  }[];
  /** The before of the next page. */
  readonly next: number | null;
};

/** The schema RuleTree of the API. */
export type RuleTree = {
  readonly origins?: readonly string[];

  readonly rows: readonly {
    /** What follows the path, up to the next / if any. */
    readonly name: string;
    /** The whole path. */
    readonly path: string;
    /** Whether it stands for the paths below it. */
    readonly folder: boolean;
    /** The mount of the ini file that has the file or folder, if any. */
    readonly mount?: string;
    /** What answers the path: a file before a rule. A folder has none. */
    readonly answers?: 'file' | 'rule' | 'fetched';
    /** The page rules of exactly this path. */
    readonly rules: readonly {
      readonly id?: string;

      readonly kind?:
        | 'content'
        | 'content.fetch'
        | 'resolve'
        | 'edit-record'
        | 'insert-record'
        | 'delete-record';
      /** Where a content.fetch rule gets its content. */
      readonly source?: string;
      /** What hides it from every visitor, and why. */
      readonly shadowed?: string;
    }[];
  }[];
  /** The after of the next page. */
  readonly next: string | null;
  /** The mounts whose names in this folder the key may not see. */
  readonly hidden_mounts?: readonly string[];
  /** Whether a folder has more names than are read. */
  readonly truncated?: boolean;
};

/** The schema RuleTimeList of the API. */
export type RuleTimeList = {
  readonly rows: readonly RuleTime[];
  /** The after of the next page. */
  readonly next: string | null;
};

/** The schema RuleTime of the API. */
export type RuleTime = {
  /** In UTC. */
  readonly at: string;
  /** The time zone in which it was named. */
  readonly time_zone?: string;

  readonly what: 'begins' | 'ends';
  /** The page rule. */
  readonly id: string;

  readonly origin: string;

  readonly path: string;

  readonly kind:
    | 'content'
    | 'content.fetch'
    | 'resolve'
    | 'edit-record'
    | 'insert-record'
    | 'delete-record';
};

/** The schema Draft of the API. */
export type Draft = {
  readonly id: string;

  readonly name: string;

  readonly comment?: string;

  readonly state: 'open' | 'published' | 'discarded';

  readonly created: string;
  /** Id of the key that made it. */
  readonly by: string;
  /** Name of the key, for the scope admin. */
  readonly by_name?: string;
  /** When it was published or discarded. */
  readonly closed?: string;
  /** Id of the key that did it. */
  readonly closed_by?: string;
  /** The transaction that published it, for an undo. */
  readonly txn?: string;

  readonly comments?: readonly {
    readonly at: string;
    /** Id of the key. */
    readonly by: string;
    /** Name of the key, for the scope admin. */
    readonly by_name?: string;

    readonly text: string;
  }[];
  /** When it was submitted for review last. */
  readonly submitted?: {
    readonly at: string;
    /** Id of the key. */
    readonly by: string;
    /** Name of the key, for the scope admin. */
    readonly by_name?: string;
  };
  /** The latest one of each key; it covers the changes before its seq. */
  readonly approvals?: readonly {
    readonly at: string;
    /** Id of the key. */
    readonly by: string;
    /** Name of the key, for the scope admin. */
    readonly by_name?: string;

    readonly seq: number;
  }[];
  /** When it is published, if that is scheduled. */
  readonly schedule?: {
    readonly at: string;
    /** The time zone in which it was named. */
    readonly time_zone?: string;
    /** Id of the key that scheduled it. */
    readonly by?: string;
    /** When it has failed, and why. It is not tried again. */
    readonly failed?: {
      readonly at: string;

      readonly reason: string;
    };
  };
  /** The links that show it. */
  readonly previews?: readonly {
    readonly id: string;

    readonly expires: string;
  }[];
  /** Position of its newest change in the log. */
  readonly seq: number;
};

/** The schema DraftList of the API. */
export type DraftList = {
  readonly rows: readonly Draft[];
  /** The after of the next page. */
  readonly next: string | null;
};

/** The schema DraftPreview of the API. */
export type DraftPreview = {
  /** For draft.revoke. */
  readonly id: string;
  /** Opens the site as the draft has it. Shown once. */
  readonly url: string;

  readonly expires: string;
};

/** The schema DraftChanges of the API. */
export type DraftChanges = {
  readonly rows: readonly {
    readonly family: string;

    readonly id: string;
    /** The path of a page rule, or the name of a record. */
    readonly label?: string;

    readonly becomes: 'inserted' | 'changed' | 'removed' | 'same';
    /** Each field that differs, live and drafted. */
    readonly fields: { readonly [name: string]: Json };
    /** Whether the record was changed live since the draft first did. */
    readonly conflict: boolean;
    /** Why the draft cannot change the live record. */
    readonly problem?: string;
  }[];
  /** The after of the next page. */
  readonly next: string | null;
};

/** The schema DraftComparison of the API. */
export type DraftComparison = {
  /** How many were answered live and in the draft. */
  readonly compared: number;
  /** How many of them differ. */
  readonly differing: number;
  /** Those that differ, in their order. */
  readonly rows: readonly {
    readonly url?: string;
    /** The key of a breadcrumb. */
    readonly key?: string;

    readonly differs: readonly ('status' | 'target' | 'headers' | 'content')[];
    /** The fields that differ. */
    readonly headers?: readonly string[];

    readonly live: {
      readonly status: number;
      /** The source that answers: disk:<name>, rule:<id> or none. */
      readonly source: string;
      /** The Location of a redirect. */
      readonly target?: string;
      /** The first line of the content that differs. */
      readonly line?: string;
      /** Why there is no answer. */
      readonly failure?: string;
    };

    readonly draft: {
      readonly status: number;
      /** The source that answers: disk:<name>, rule:<id> or none. */
      readonly source: string;
      /** The Location of a redirect. */
      readonly target?: string;
      /** The first line of the content that differs. */
      readonly line?: string;
      /** Why there is no answer. */
      readonly failure?: string;
    };
  }[];
};

/** The schema PublishReport of the API. */
export type PublishReport = {
  readonly done: false;
  /** Records that the draft changes. */
  readonly records: number;
  /** Records that would be new. */
  readonly inserted: number;
  /** Records that would change. */
  readonly changed: number;
  /** Records that would be deleted. */
  readonly removed: number;

  readonly changes: readonly DraftedChange[];
  /** Records that were changed live since the draft first did, with three versions of each field: base is the live one of then. */
  readonly conflicts: readonly DraftedChange[];
  /** Number of these records. */
  readonly conflicting: number;
  /** Those without a resolution: nothing is published while there is one. */
  readonly unresolved: number;
  /** Number of records that are counted and not listed. */
  readonly unlisted: number;
  /** Whether the server demands an approval. */
  readonly needs_approval: boolean;
  /** Ids of the keys that have approved it as it is now, and have not changed it. */
  readonly approved_by: readonly string[];
  /** Send it as confirm to publish. */
  readonly digest: string;
  /** The time at which it is published; only after a call with at and confirm. */
  readonly scheduled?: {
    readonly at: string;
    /** The time zone in which it was named. */
    readonly time_zone?: string;
    /** Id of the key that scheduled it. */
    readonly by?: string;
    /** When it has failed, and why. It is not tried again. */
    readonly failed?: {
      readonly at: string;

      readonly reason: string;
    };
  };
};

/** The schema DraftedChange of the API. */
export type DraftedChange = {
  readonly family: string;

  readonly id: string;
  /** The path of a page rule, or the name of another record. */
  readonly label?: string;

  readonly becomes: 'inserted' | 'changed' | 'removed' | 'same';
  /** Each field that differs; of a long value only the start. */
  readonly fields: {
    readonly [name: string]: {
      readonly base?: Json;

      readonly live: Json;

      readonly draft: Json;
    };
  };
  /** Why the draft cannot change the live record. */
  readonly problem?: string;
};

/** The schema PublishDone of the API. */
export type PublishDone = {
  readonly done: true;
  /** The transaction: invalidate of each family can revert it. */
  readonly txn: string;
  /** Seq of its last row. */
  readonly seq: number;
  /** Records that have changed. */
  readonly records: number;
  /** Their families. */
  readonly families: readonly string[];
};

/** The schema LogEnd of the API. */
export type LogEnd = {
  /** The id of the log; a copy of it has the same. */
  readonly log: string;
  /** The newest change. */
  readonly seq: number;
  /** The transaction of that change. */
  readonly txn: string;
  /** How often a promoted copy has replaced the log; 0 if never. */
  readonly generation?: number;
  /** The version of the protocol of nodes. */
  readonly protocol: number;
  /** The version of the server. */
  readonly version: string;
};

/** The schema NodeReported of the API. */
export type NodeReported = {
  /** The newest change of the centre. */
  readonly seq: number;
};

/** The schema NodeList of the API. */
export type NodeList = {
  readonly rows: readonly Node[];
  /** The newest change of the log. */
  readonly seq: number;
};

/** The schema Node of the API. */
export type Node = {
  readonly name: string;

  readonly role: string;

  readonly place?: string;

  readonly version: string;

  readonly protocol?: number;
  /** The newest change that it had. */
  readonly seq: number;
  /** Changes that it lacked at its last report. */
  readonly lag: number;

  readonly outbox: {
    readonly waiting: number;

    readonly refused: number;
  };
  /** Its clock less that of the centre. */
  readonly clock_offset_ms: number;

  readonly last_contact: string;
  /** Whether an event has reported its silence. */
  readonly silent?: boolean;
  /** What it has delivered, by the id of the hook. */
  readonly deliveries?: { readonly [name: string]: Json };
  /** What is wrong with it, and what to do. */
  readonly problem?: string;
  /** The machine of the cluster that a follower reports to. */
  readonly via?: string;
  /** For the machines of a cluster. */
  readonly cluster?: {
    /** How far it had applied the log of the cluster. */
    readonly position: number;
    /** What it does for the whole cluster, such as `webhooks`. */
    readonly tasks: readonly string[];
  };
};

/** The schema NodeSecrets of the API. */
export type NodeSecrets = {
  /** Rows of the log, as JSON. */
  readonly rows: readonly string[];
};

/** The schema TakenEntries of the API. */
export type TakenEntries = {
  readonly results: readonly {
    readonly id: string;
    /** Its position in the log. */
    readonly seq?: number;

    readonly error?: {
      readonly code: string;

      readonly message: string;
    };
  }[];
};

/** The schema OutboxList of the API. */
export type OutboxList = {
  readonly rows: readonly OutboxEntry[];
  /** Number of entries that wait. */
  readonly waiting: number;
  /** Number of entries that were refused. */
  readonly refused: number;
};

/** The schema OutboxEntry of the API. */
export type OutboxEntry = {
  /** Its place in the outbox. */
  readonly n: number;
  /** The id of the event or row. */
  readonly id: string;
  /** The operation. */
  readonly a: string;
  /** Its input; of a row only the table. */
  readonly v: { readonly [name: string]: Json };
  /** When this node took it. */
  readonly dtu_txn: string;
  /** The key of the caller. */
  readonly by: string;

  readonly refused?: {
    readonly code: string;

    readonly message: string;

    readonly at: string;
  };
};

/** The schema OutboxChanged of the API. */
export type OutboxChanged = {
  /** Number of entries that were changed. */
  readonly count: number;
  /** If there can be further entries, the `after` of the call for them. */
  readonly next: number | null;
  /** The `up_to` of that call. */
  readonly up_to: number;
};

/** The schema PageRuleChange of the API. */
export type PageRuleChange = {
  /** Position in the log. */
  readonly seq: number;
  /** Id of the transaction. */
  readonly txn: string;

  readonly action: 'insert' | 'edit' | 'invalidate';
  /** Id of the page rule. */
  readonly id: string;
  /** The data of the row, as in the history. */
  readonly data: { readonly [name: string]: Json };
  /** The page rule after the change; null if it was deleted. */
  readonly record: PageRule | null;
};

/** The schema Subscribed of the API. */
export type Subscribed = {
  /** The newest change now. */
  readonly seq: number;
};

/** The schema RowChange of the API. */
export type RowChange = {
  /** Position in the log. */
  readonly seq: number;
  /** Id of the transaction. */
  readonly txn: string;

  readonly action: 'insert' | 'edit' | 'invalidate';
  /** Id of the row. */
  readonly id: string;
  /** The name of the table. */
  readonly table: string;
  /** The fields that changed; null for a removed one. */
  readonly data: { readonly [name: string]: Json };
  /** The row after the change; null if it was deleted. */
  readonly record: { readonly [name: string]: Json } | null;
};

/** The schema SubscribedToRows of the API. */
export type SubscribedToRows = {
  /** The newest change now. */
  readonly seq: number;
};

/** The schema Stale of the API. */
export type Stale = {
  /** Position in the log. */
  readonly seq: number;
};

/** The schema Followed of the API. */
export type Followed = {
  /** The newest change now. */
  readonly seq: number;
};

/** The schema LogRows of the API. */
export type LogRows = {
  /** Consecutive rows, each as JSON. A transaction may continue in the next. */
  readonly rows: readonly string[];
  /** The newest change of the log at that time. */
  readonly newest: number;
};

/** The operations that answer once, by their names without `svc1.`. */
export interface Operations {
  /** Adds a page rule. */
  'userinterface.insert': { input: NewPageRule; output: WrittenPageRule };
  /** Changes the sent fields of a page rule; null removes one. */
  'userinterface.edit': { input: PageRuleEdit; output: WrittenPageRule };
  /** Reads a page rule, or its history (qk=history), newest row first. */
  'userinterface.read': {
    input: {
      readonly id: string;

      readonly limit?: number | null;
      /** Only for a history: rows before this seq. */
      readonly before?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: PageRule | History;
  };
  /** Lists the page rules that match all filters, oldest first. */
  'userinterface.list': {
    input: {
      /** The origin, such as https://example.com, or *. */
      readonly origin?: string | null;
      /** The start of the path, or of the key. */
      readonly path?: string | null;
      /** The kind of page rule. */
      readonly kind?:
        | 'content'
        | 'content.fetch'
        | 'resolve'
        | 'edit-record'
        | 'insert-record'
        | 'delete-record'
        | null;
      /** The table. */
      readonly table?: string | null;
      /** The engine. */
      readonly engine?: string | null;
      /** A moment, written as in from and until: the rules that answer then. */
      readonly valid_at?: string | null;
      /** A text in any field, in upper or lower case. */
      readonly text?: string | null;
      /** The order: inserted (oldest first, the default), -inserted, path (by origin and path; rules whose origin waits, and paths over 1,900 bytes, come first) or -path. */
      readonly sort?: 'inserted' | '-inserted' | 'path' | '-path' | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: PageRuleList;
  };
  /** Reverts changes; without confirm it only reports them. */
  'userinterface.invalidate': {
    input: {
      /** Rows of one page rule; alone, all of it. */
      readonly id?: string | null;
      /** Rows of one transaction. */
      readonly txn?: string | null;
      /** Rows that one key, or one command, wrote. */
      readonly by?: string | null;
      /** Rows since a seq or a date-time. */
      readonly from?: string | null;
      /** Rows up to a seq or a date-time. */
      readonly until?: string | null;
      /** Ids of records that stay as they are. */
      readonly except?: readonly string[] | null;
      /** The digest of a dry run, to carry it out. */
      readonly confirm?: string | null;
    };
    output: InvalidateDryRun | InvalidateDone;
  };
  /** Registers a hook. Only this answer shows its secret. */
  'webhook.insert': { input: NewHook; output: NewHookAnswer };
  /** Changes the sent fields of a hook; null restores the default of a field. */
  'webhook.edit': { input: HookEdit; output: WrittenHook };
  /** Reads a hook without its secret, or its history (qk=history), newest row first. */
  'webhook.read': {
    input: {
      readonly id: string;

      readonly limit?: number | null;
      /** Only for a history: rows before this seq. */
      readonly before?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: Hook | History;
  };
  /** Lists the hooks that match all filters, oldest first. */
  'webhook.list': {
    input: {
      /** An event type that the hook names, or *. */
      readonly event?: string | null;
      /** Whether the hook delivers. */
      readonly active?: boolean | null;
      /** A text in any field, in upper or lower case. */
      readonly text?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: HookList;
  };
  /** Reverts changes; without confirm it only reports them. */
  'webhook.invalidate': {
    input: {
      /** Rows of one hook; alone, all of it. */
      readonly id?: string | null;
      /** Rows of one transaction. */
      readonly txn?: string | null;
      /** Rows that one key, or one command, wrote. */
      readonly by?: string | null;
      /** Rows since a seq or a date-time. */
      readonly from?: string | null;
      /** Rows up to a seq or a date-time. */
      readonly until?: string | null;
      /** Ids of records that stay as they are. */
      readonly except?: readonly string[] | null;
      /** The digest of a dry run, to carry it out. */
      readonly confirm?: string | null;
    };
    output: InvalidateDryRun | InvalidateDone;
  };
  /** Adds a table. */
  'table.insert': { input: NewTable; output: WrittenTable };
  /** Changes the sent fields of a table. A schema that makes values of rows invalid is only reported without confirm. */
  'table.edit': { input: TableEdit; output: WrittenTable | SchemaChange };
  /** Reads a table, or its history (qk=history), newest row first. */
  'table.read': {
    input: {
      readonly id: string;

      readonly limit?: number | null;
      /** Only for a history: rows before this seq. */
      readonly before?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: Table | History;
  };
  /** Lists the tables that match all filters, oldest first. */
  'table.list': {
    input: {
      /** The name of a table. */
      readonly name?: string | null;
      /** A text in any field, in upper or lower case. */
      readonly text?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: TableList;
  };
  /** Reverts changes; without confirm it only reports them. */
  'table.invalidate': {
    input: {
      /** Rows of one table; alone, all of it. */
      readonly id?: string | null;
      /** Rows of one transaction. */
      readonly txn?: string | null;
      /** Rows that one key, or one command, wrote. */
      readonly by?: string | null;
      /** Rows since a seq or a date-time. */
      readonly from?: string | null;
      /** Rows up to a seq or a date-time. */
      readonly until?: string | null;
      /** Ids of records that stay as they are. */
      readonly except?: readonly string[] | null;
      /** The digest of a dry run, to carry it out. */
      readonly confirm?: string | null;
    };
    output: InvalidateDryRun | InvalidateDone;
  };
  /** Adds a row. */
  'record.insert': { input: NewRow; output: WrittenRow };
  /** Changes the sent fields of a row; null removes one. */
  'record.edit': { input: RowEdit; output: WrittenRow };
  /** Reads a row, or its history (qk=history), newest row first. */
  'record.read': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** The id of the row; or in place of it, the key field of the table with its value. */
      readonly id?: string | null;

      readonly limit?: number | null;
      /** Only for a history: rows before this seq. */
      readonly before?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: Row | History;
  };
  /** Lists the rows of a table, filtered and sorted by indexed fields, or found by a text. */
  'record.list': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** Conditions on indexed fields: a value, or =, <, <=, >, >=, in, prefix with values. */
      readonly where?: { readonly [name: string]: Json } | null;
      /** An indexed field, with - before it for descending; by default, oldest first. */
      readonly sort?: string | null;
      /** Whether to count the rows. */
      readonly count?: boolean | null;
      /** Words in the fields that the table searches, the most relevant rows first. */
      readonly text?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: RowList;
  };
  /** Reverts changes; without confirm it only reports them. */
  'record.invalidate': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** Rows of one row; alone, all of it. */
      readonly id?: string | null;
      /** Rows of one transaction. */
      readonly txn?: string | null;
      /** Rows that one key, or one command, wrote. */
      readonly by?: string | null;
      /** Rows since a seq or a date-time. */
      readonly from?: string | null;
      /** Rows up to a seq or a date-time. */
      readonly until?: string | null;
      /** Ids of records that stay as they are. */
      readonly except?: readonly string[] | null;
      /** The digest of a dry run, to carry it out. */
      readonly confirm?: string | null;
    };
    output: InvalidateDryRun | InvalidateDone;
  };
  /** Imports page rules, hooks, tables and rows from NDJSON, all lines in one transaction or none. */
  'userinterface.import': {
    input: {
      /** Up to 100000 lines: a rule with its vk beside its fields, or {a, v, vk}. Over HTTP they may be the body, as application/x-ndjson. */
      readonly ndjson: string;
      /** Only reports. */
      readonly dry_run?: boolean | null;
    };
    output: ImportReport;
  };
  /** The number of rows of each table. */
  'table.counts': { input: { readonly [name: string]: Json }; output: TableCounts };
  /** Says what an insert or edit of a row would say about its fields, and writes nothing. */
  'record.check': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** The id of the row, for an edit. */
      readonly id?: string | null;
    };
    output: CheckedRow;
  };
  /** A row, or a list of rows, as a running page may see it. */
  'record.get': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** The id of the row; or in place of it, the key field of the table with its value. */
      readonly id?: string | null;
      /** Conditions on indexed fields: a value, or =, <, <=, >, >=, in, prefix with values. */
      readonly where?: { readonly [name: string]: Json } | null;
      /** An indexed field, with - before it for descending; by default, oldest first. */
      readonly sort?: string | null;
      /** Whether to count the rows. */
      readonly count?: boolean | null;
      /** Words in the fields that are searched. */
      readonly text?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope record.read. */
      readonly as_of?: string | null;
    };
    output: ShownRow | ShownRowList;
  };
  /** The schema of a table, and what the caller may do with its rows. */
  'record.schema': {
    input: {
      /** The name of the table. */
      readonly table: string;
    };
    output: TableSchema;
  };
  /** How a request would be answered, and why: every source and candidate in order. */
  'userinterface.explain': {
    input: {
      readonly url?: string | null;

      readonly origin?: string | null;

      readonly path?: string | null;

      readonly query?: string | null;

      readonly k?: string | null;

      readonly method?: string | null;
      /** Name of the signed-in user. */
      readonly user?: string | null;
      /** Roles of the signed-in user, separated by commas. */
      readonly role?: string | null;
      /** The visitor's country, as an ISO 3166-1 code such as CH. */
      readonly country?: string | null;
      /** The visitor's region: a code or a name. */
      readonly region?: string | null;
      /** The visitor's city, by name. */
      readonly city?: string | null;
      /** The `[node] place` of the node that answers. */
      readonly place?: string | null;
      /** Address of the visitor. */
      readonly ip?: string | null;
      /** The Accept-Language of the request. */
      readonly lang?: string | null;
      /** The visitor's device. */
      readonly device?: string | null;
      /** URL of the page that links here. */
      readonly referer?: string | null;
      /** The kind of client that requests the page. */
      readonly caller?: string | null;
      /** The time of the visit, as a date-time; now by default. */
      readonly at?: string | null;
      /** The visitor's bucket for percentages (percent), from 0 to 100. */
      readonly draw?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: Explanation;
  };
  /** The page rule that answers at an origin and path, as a running page may see it. */
  'userinterface.get': {
    input: {
      /** Such as https://example.com. */
      readonly origin: string;
      /** As in a URL, or decoded; a query may follow. */
      readonly path: string;

      readonly query?: string | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: PublicPageRule;
  };
  /** The data that a generic page needs to render itself for an origin, path and query. */
  'userinterface.get_render': {
    input: {
      /** Such as https://example.com. */
      readonly origin: string;
      /** As in a URL, or decoded; a query may follow. */
      readonly path: string;
      /** The query as a text, or its parameters as get_render answers them. */
      readonly query?: (string | null) | { readonly [name: string]: string | readonly string[] };
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
      /** Name of the signed-in user. */
      readonly user?: string | null;
      /** Roles of the signed-in user, separated by commas. */
      readonly role?: string | null;
      /** The visitor's country, as an ISO 3166-1 code such as CH. */
      readonly country?: string | null;
      /** The visitor's region: a code or a name. */
      readonly region?: string | null;
      /** The visitor's city, by name. */
      readonly city?: string | null;
      /** The `[node] place` of the node that answers. */
      readonly place?: string | null;
      /** Address of the visitor. */
      readonly ip?: string | null;
      /** The Accept-Language of the request. */
      readonly lang?: string | null;
      /** The visitor's device. */
      readonly device?: string | null;
      /** URL of the page that links here. */
      readonly referer?: string | null;
      /** The kind of client that requests the page. */
      readonly caller?: string | null;
      /** The time of the visit, as a date-time; now by default. */
      readonly at?: string | null;
      /** The visitor's bucket for percentages (percent), from 0 to 100. */
      readonly draw?: number | null;
    };
    output: RenderInformation;
  };
  /** The result of a breadcrumb, for the caller or for a visitor that the input describes. */
  'userinterface.get_resolve': {
    input: {
      /** The key of the breadcrumb. */
      readonly k: string;
      /** That of the request by default. */
      readonly origin?: string | null;

      readonly query?: string | null;
      /** Name of the signed-in user. */
      readonly user?: string | null;
      /** Roles of the signed-in user, separated by commas. */
      readonly role?: string | null;
      /** The visitor's country, as an ISO 3166-1 code such as CH. */
      readonly country?: string | null;
      /** The visitor's region: a code or a name. */
      readonly region?: string | null;
      /** The visitor's city, by name. */
      readonly city?: string | null;
      /** The `[node] place` of the node that answers. */
      readonly place?: string | null;
      /** Address of the visitor. */
      readonly ip?: string | null;
      /** The Accept-Language of the request. */
      readonly lang?: string | null;
      /** The visitor's device. */
      readonly device?: string | null;
      /** URL of the page that links here. */
      readonly referer?: string | null;
      /** The kind of client that requests the page. */
      readonly caller?: string | null;
      /** The time of the visit, as a date-time; now by default. */
      readonly at?: string | null;
      /** The visitor's bucket for percentages (percent), from 0 to 100. */
      readonly draw?: number | null;
      /** A seq or a date-time: the answer as it was then. It needs the scope read. */
      readonly as_of?: string | null;
    };
    output: Resolution;
  };
  /** Gives a hook a new secret; for 24 hours the former one signs as well. */
  'webhook.rotate': {
    input: {
      readonly id: string;
    };
    output: RotatedSecret;
  };
  /** Stops the deliveries of a hook; its events wait. */
  'webhook.pause': {
    input: {
      /** The id of the hook. */
      readonly id: string;
      /** The write fails unless the record has this seq. */
      readonly if_seq?: number | null;
    };
    output: WrittenHook;
  };
  /** Resumes the deliveries of a hook, beginning with the events that wait. */
  'webhook.resume': {
    input: {
      /** The id of the hook. */
      readonly id: string;
      /** The write fails unless the record has this seq. */
      readonly if_seq?: number | null;
    };
    output: WrittenHook;
  };
  /** Sends a hook an event of the type webhook.test, in the way of all other events. */
  'webhook.test': {
    input: {
      readonly id: string;
    };
    output: TakenEvent;
  };
  /** Sends messages of a hook again: one, those of a time, or those that were given up. */
  'webhook.replay': {
    input: {
      /** The id of the hook. */
      readonly id: string;
      /** One message, by its id or its number among the messages of the hook. */
      readonly delivery?: string | null;
      /** Events since a date-time or a seq of the log. */
      readonly since?: string | null;
      /** Events up to a date-time or a seq of the log. */
      readonly until?: string | null;
      /** Only messages that were given up after their last attempt. */
      readonly failed?: boolean | null;
    };
    output: Replay;
  };
  /** The attempts at the messages of a hook, the newest messages first. */
  'webhook.deliveries': {
    input: {
      /** The id of the hook. */
      readonly id: string;

      readonly outcome?: 'completed' | 'completed_404' | 'failed' | 'exhausted';
      /** The next of the page before: only messages before this seq. */
      readonly before?: number | null;

      readonly limit?: number | null;
    };
    output: DeliveryList;
  };
  /** One message of a hook: its content, its requests, and what the receiver answered. */
  'webhook.delivery': {
    input: {
      /** The id of the hook. */
      readonly id: string;
      /** The id of the message, or its seq. */
      readonly delivery: string;
    };
    output: Delivery;
  };
  /** The state of hooks: how the newest attempts ended, and what waits. */
  'webhook.health': {
    input: {
      /** Only this hook. */
      readonly id?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: HookHealthList;
  };
  /** Stores an event, which the hooks for its type deliver; answers when it is durable. */
  'event.insert': { input: NewEvent; output: TakenEvent };
  /** An event by its id: the data of a delivery, as Waymark stores it. */
  'event.read': {
    input: {
      readonly id: string;
    };
    output: Event;
  };
  /** Events that match all filters, newest first. */
  'event.list': {
    input: {
      /** The type of the events. */
      readonly type?: string | null;
      /** The trading counter of the events. */
      readonly counter?: string | null;
      /** The next of the page before: only events before this seq. */
      readonly before?: number | null;

      readonly limit?: number | null;
    };
    output: EventList;
  };
  /** The event types that Waymark knows, each with a JSON Schema of its data. */
  'event.types': { input: { readonly [name: string]: Json }; output: EventTypes };
  /** Removes stored responses of other servers: of a URL, a prefix, a rule, or all. */
  'cache.purge': {
    input: {
      /** A URL, or a path on this site. Every spelling of it is removed. */
      readonly url?: string | null;
      /** The start of the URLs, with their origin or as a path on this site. */
      readonly prefix?: string | null;
      /** The id of the page rule that fetched them. */
      readonly rule?: string | null;
      /** Everything. */
      readonly all?: boolean | null;
    };
    output: PurgedAnswers;
  };
  /** Stored responses of other servers, in the order of their URLs. */
  'cache.list': {
    input: {
      /** The start of the URLs, with their origin or as a path on this site. */
      readonly prefix?: string | null;
      /** The id of the page rule that fetched them. */
      readonly rule?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: CacheListPage;
  };
  /** Number and size of the stored responses of other servers. */
  'cache.status': { input: { readonly [name: string]: Json }; output: CacheStatus };
  /** Makes an API key. Only this answer shows it. */
  'key.insert': {
    input: {
      readonly name: string;

      readonly scopes: readonly string[];
      /** Operations a second that the key may call. */
      readonly rate?: number | null;
      /** For the scope follow: the name of the node that may use the key. */
      readonly node?: string | null;
      /** Binds the key to page rules of these origins. */
      readonly origins?: readonly string[] | null;
      /** Binds the key to page rules and breadcrumbs below these paths: /blog/ stands for all below it, /blog also for /blog itself. */
      readonly paths?: readonly string[] | null;
    };
    output: NewKey;
  };
  /** Every valid API key, without the key itself, and when it was used last. */
  'key.list': { input: { readonly [name: string]: Json }; output: KeyList };
  /** Revokes an API key at once and for good. */
  'key.revoke': {
    input: {
      readonly id: string;
    };
    output: RevokedKey;
  };
  /** Version, position of the log, state of the configuration, counts. */
  'server.status': { input: { readonly [name: string]: Json }; output: ServerStatus };
  /** The configuration in use with its defaults, and the line of the ini file of each key. */
  'server.configuration': { input: { readonly [name: string]: Json }; output: ServerConfiguration };
  /** The servers that content is fetched from: requests, failures, durations, connections. */
  'source.list': { input: { readonly [name: string]: Json }; output: SourceList };
  /** Gives a websocket its API key; a browser cannot send it with the upgrade. */
  'session.authenticate': {
    input: {
      readonly apikey: string;
    };
    output: Session;
  };
  /** Ends the subscriptions of a websocket that requests with this id began. */
  'session.unsubscribe': {
    input: {
      /** The id of the envelope that subscribed. */
      readonly id: Json;
    };
    output: Unsubscribed;
  };
  /** Signs in: makes a session of 12 hours from an API key; the answer sets its cookie. */
  'session.insert': {
    input: {
      readonly apikey: string;
    };
    output: NewSession;
  };
  /** Who the caller is: its scopes, its key and its session. */
  'session.read': { input: { readonly [name: string]: Json }; output: CurrentSession };
  /** Every open session, with the key that it was made with. */
  'session.list': { input: { readonly [name: string]: Json }; output: SessionList };
  /** Signs out: ends the session of the caller, or, with the scope admin, the one of an id. */
  'session.end': {
    input: {
      readonly id?: string | null;
    };
    output: EndedSession;
  };
  /** The open sessions of visitors who have signed in by [login] at this node. */
  'login.list': {
    input: {
      /** The id of the last session seen. */
      readonly after?: string | null;
      /** Only the sessions of this user. */
      readonly user?: string | null;
    };
    output: LoginList;
  };
  /** Ends the session of a visitor at once, also in the console. */
  'login.end': {
    input: {
      readonly id: string;
    };
    output: EndedLogin;
  };
  /** Makes a session of the console for a person who has just signed in by [login]. */
  'login.console': {
    input: {
      /** What the sign-in has added to the address of the console. */
      readonly grant: string;
      /** What the console has sent to the sign-in. */
      readonly state: string;
    };
    output: NewSession;
  };
  /** Requests, durations, cache, bytes and deliveries over time, up to 30 days back. */
  'metrics.series': {
    input: {
      /** How far back; 1h by default. */
      readonly last?: '1h' | '3h' | '24h' | '3d' | '7d' | '30d';
    };
    output: MetricsSeries;
  };
  /** The visits of a breadcrumb, or of all, by day, branch, country, device and host. */
  'breadcrumb.visits': {
    input: {
      /** The key of one. */
      readonly k?: string | null;
      /** The origin of its rule; all by default. */
      readonly origin?: string | null;
      /** The first day, in UTC; 30 days up to `until` by default. */
      readonly from?: string | null;
      /** The last day; today by default. */
      readonly until?: string | null;
      /** Keys in the answer; 100 by default. */
      readonly limit?: number | null;
    };
    output: BreadcrumbVisits;
  };
  /** The changes of page rules, and of hooks and keys for their scopes, newest first. */
  'change.list': {
    input: {
      /** Rows before this seq. */
      readonly before?: number | null;

      readonly limit?: number | null;
      /** Id of the key, or name of the command. */
      readonly by?: string | null;
      /** Id of the transaction. */
      readonly txn?: string | null;
      /** From this date-time or seq on. */
      readonly from?: string | null;
      /** Up to this date-time or seq. */
      readonly until?: string | null;

      readonly family?: 'userinterface' | 'webhook' | 'key' | null;

      readonly action?: 'insert' | 'edit' | 'invalidate' | null;
    };
    output: ChangeList;
  };
  /** Lists the names directly below a path, of page rules and files, as a folder does. */
  'userinterface.tree': {
    input: {
      /** An origin, or *. */
      readonly origin?: string | null;
      /** The start of the paths, up to a /; empty for all, with the breadcrumbs. */
      readonly path?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
      /** Whether to look for what hides the rules; true takes longer. */
      readonly shadows?: boolean | null;
    };
    output: RuleTree;
  };
  /** When page rules begin to answer and when they end, the next time first. */
  'userinterface.times': {
    input: {
      /** The first moment, written as in from of a page rule: now. */
      readonly from?: string | null;
      /** The moment before which they are. */
      readonly until?: string | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: RuleTimeList;
  };
  /** Makes a draft: a named set of changes that is not live. */
  'draft.insert': {
    input: {
      readonly name: string;

      readonly comment?: string | null;
    };
    output: Draft;
  };
  /** Changes the name or the comment of an open draft. */
  'draft.edit': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;

      readonly name?: string | null;

      readonly comment?: string | null;
    };
    output: Draft;
  };
  /** One draft, also one that was published or discarded. */
  'draft.read': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
    };
    output: Draft;
  };
  /** The drafts that are open, or those of another state, the oldest first. */
  'draft.list': {
    input: {
      readonly state?: 'open' | 'published' | 'discarded' | null;
      /** Only those with a schedule. */
      readonly scheduled?: boolean | null;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: DraftList;
  };
  /** Discards an open draft with all its changes; nothing live changes. */
  'draft.invalidate': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
    };
    output: Draft;
  };
  /** Adds a comment to an open draft, for all who read it. */
  'draft.comment': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;

      readonly text: string;
    };
    output: Draft;
  };
  /** Says that a draft is ready for review; hooks get the event draft.submitted. */
  'draft.submit': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
    };
    output: Draft;
  };
  /** Approves a draft as it is now; it does not count from a key that has changed the draft. */
  'draft.approve': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** The digest of a report of publish, to approve what that has shown. */
      readonly confirm?: string | null;
    };
    output: Draft;
  };
  /** Makes a link that shows the site as an open draft has it, until it ends. */
  'draft.preview': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** How long the link works; by default 604800. */
      readonly seconds?: number | null;
    };
    output: DraftPreview;
  };
  /** Ends a preview of a draft at once. */
  'draft.revoke': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** The id of the preview. */
      readonly id: string;
    };
    output: {
      readonly id: string;
    };
  };
  /** The records that an open draft changes, with the fields that differ. */
  'draft.changes': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** The next of the page before. */
      readonly after?: string | null;

      readonly limit?: number | null;
    };
    output: DraftChanges;
  };
  /** The URLs and breadcrumbs whose answers differ between a draft and the live site. */
  'draft.compare': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** URLs, or paths at the origin: one a line. */
      readonly urls?: string | null;
      /** Keys of breadcrumbs: one a line. */
      readonly keys?: string | null;
      /** That of the request by default. */
      readonly origin?: string | null;
      /** Name of the signed-in user. */
      readonly user?: string | null;
      /** Roles of the signed-in user, separated by commas. */
      readonly role?: string | null;
      /** The visitor's country, as an ISO 3166-1 code such as CH. */
      readonly country?: string | null;
      /** The visitor's region: a code or a name. */
      readonly region?: string | null;
      /** The visitor's city, by name. */
      readonly city?: string | null;
      /** The `[node] place` of the node that answers. */
      readonly place?: string | null;
      /** Address of the visitor. */
      readonly ip?: string | null;
      /** The Accept-Language of the request. */
      readonly lang?: string | null;
      /** The visitor's device. */
      readonly device?: string | null;
      /** URL of the page that links here. */
      readonly referer?: string | null;
      /** The kind of client that requests the page. */
      readonly caller?: string | null;
      /** The time of the visit, as a date-time; now by default. */
      readonly at?: string | null;
      /** The visitor's bucket for percentages (percent), from 0 to 100. */
      readonly draw?: number | null;
    };
    output: DraftComparison;
  };
  /** Makes the changes of a draft live, all or none, now or at a time; without confirm it only reports them. */
  'draft.publish': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
      /** The digest of a report, to publish. */
      readonly confirm?: string | null;
      /** A later time: a date-time with an offset, or the local time of time_zone, such as 2026-12-01T08:00. */
      readonly at?: string | null;
      /** The time zone of at, such as Europe/Berlin. */
      readonly time_zone?: string | null;
      /** The resolution of conflicts by the ids of their records: draft puts the fields of the draft on top of the live ones, live keeps the live record. */
      readonly resolve?: { readonly [name: string]: 'draft' | 'live' } | null;
      /** The resolution of all other conflicts. */
      readonly others?: 'draft' | 'live' | null;
    };
    output: PublishReport | PublishDone;
  };
  /** Removes the schedule of a draft: it is not published at that time, and takes changes. */
  'draft.unschedule': {
    input: {
      /** The name or the id of a draft. */
      readonly draft: string;
    };
    output: Draft;
  };
  /** The id and the newest change of the log, for a node that copies it. */
  'log.end': {
    input: {
      /** The name of the node that requests this. */
      readonly node: string;
      /** The version of the protocol that the node uses. */
      readonly protocol?: number | null;
    };
    output: LogEnd;
  };
  /** The state of a node that follows the log, which node.list shows. */
  'node.report': {
    input: {
      /** The name of the node that requests this. */
      readonly node: string;
      /** The version of the protocol that the node uses. */
      readonly protocol?: number | null;

      readonly role: string;

      readonly place?: string | null;

      readonly version: string;
      /** An id of the process: another one after each start. */
      readonly process?: string | null;
      /** The newest change that the node has. */
      readonly seq: number;
      /** Its clock, in milliseconds since 1970. */
      readonly now: number;
      /** Entries of its outbox that wait. */
      readonly waiting: number;
      /** Entries of its outbox that were refused. */
      readonly refused: number;
      /** What it has delivered, by the id of the hook. */
      readonly deliveries?: { readonly [name: string]: Json } | null;
    };
    output: NodeReported;
  };
  /** The machines of the cluster, and the replicas and counters that follow it or this server, with their last reports. */
  'node.list': { input: { readonly [name: string]: Json }; output: NodeList };
  /** The secrets and header values of the webhooks that a node delivers. */
  'node.secrets': {
    input: {
      /** The name of the node that requests this. */
      readonly node: string;
      /** The version of the protocol that the node uses. */
      readonly protocol?: number | null;

      readonly role: 'replica' | 'counter';
    };
    output: NodeSecrets;
  };
  /** Stores the entries of the outbox of a counter, in order and each once. */
  'node.insert': {
    input: {
      /** The name of the node that requests this. */
      readonly node: string;
      /** The version of the protocol that the node uses. */
      readonly protocol?: number | null;
      /** The id of the log that the node follows; a server with another one refuses. */
      readonly log?: string | null;

      readonly entries: readonly {
        /** The id of the new record. */
        readonly id: string;
        /** The operation. */
        readonly a: string;

        readonly v: { readonly [name: string]: Json };
        /** When the node took it. */
        readonly dtu_txn: string;
      }[];
    };
    output: TakenEntries;
  };
  /** The events and rows that this counter took and its centre has not stored yet. */
  'outbox.list': {
    input: {
      /** Only entries that the centre has refused. */
      readonly refused?: boolean | null;
      /** With refused: only entries that were refused with this code. */
      readonly code?: string | null;
      /** With refused: entries after this n. */
      readonly after?: number | null;

      readonly limit?: number | null;
    };
    output: OutboxList;
  };
  /** Sends an entry, or all entries, that the centre has refused again, after all others. */
  'outbox.retry': {
    input: {
      /** The place of one entry. */
      readonly n?: number | null;
      /** All refused entries, at most 1,000 in one call. */
      readonly all?: boolean | null;
      /** With all: only entries that were refused with this code. */
      readonly code?: string | null;
      /** With all: entries after this n. */
      readonly after?: number | null;
      /** With all: entries up to this n; by default the newest. */
      readonly up_to?: number | null;
    };
    output: OutboxChanged;
  };
  /** Removes an entry, or all entries, that the centre has refused from the outbox. */
  'outbox.discard': {
    input: {
      /** The place of one entry. */
      readonly n?: number | null;
      /** All refused entries, at most 1,000 in one call. */
      readonly all?: boolean | null;
      /** With all: only entries that were refused with this code. */
      readonly code?: string | null;
      /** With all: entries after this n. */
      readonly after?: number | null;
      /** With all: entries up to this n; by default the newest. */
      readonly up_to?: number | null;
    };
    output: OutboxChanged;
  };
}

/** The operations that stream, over the websocket only. */
export interface Streams {
  /** Changes of page rules as they are committed, in the order of seq, without gap or repeat. */
  'userinterface.subscribe': {
    input: {
      /** Send changes after this seq; by default, those after the current one. */
      readonly from_seq?: number | null;

      readonly origin?: string | null;

      readonly path?: string | null;

      readonly id?: string | null;
    };
    output: Subscribed;
    packet: PageRuleChange;
  };
  /** Changes of the rows of a table as they are committed, without gap or repeat. */
  'record.subscribe': {
    input: {
      /** The name of the table. */
      readonly table: string;
      /** Only changes of this row. */
      readonly id?: string | null;
      /** Send changes after this seq; by default, those after the current one. */
      readonly from_seq?: number | null;
    };
    output: SubscribedToRows;
    packet: RowChange;
  };
  /** Tells a running page when a page rule for its own origin and path has changed. */
  'userinterface.follow': {
    input: {
      readonly origin: string;

      readonly path: string;
      /** Send changes after this seq; by default, those after the current one. */
      readonly from_seq?: number | null;
    };
    output: Followed;
    packet: Stale;
  };
  /** The rows of the log as they are committed, for a node that keeps a copy. */
  'log.follow': {
    input: {
      /** The name of the node that requests this. */
      readonly node: string;
      /** The version of the protocol that the node uses. */
      readonly protocol?: number | null;
      /** The id of the log, as log.end has it. */
      readonly log: string;
      /** The newest change that the node has; 0 for none. */
      readonly seq: number;
      /** The transaction of that change; empty for none. */
      readonly txn: string;
    };
    output: LogEnd;
    packet: LogRows;
  };
}
