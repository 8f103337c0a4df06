/*
 * The contract of modules that are not a part of Waymark, as `waymark/module` exports it. It
 * follows semantic versions. Requests and answers are those of the Fetch standard.
 */
import { type FieldsOf, type Keys, list, optional, repeated, single } from '../config/ini-key.ts';
import { anyText, choice, duration, size, wholeNumber, yesNo } from '../config/values.ts';
import type { JsonObject } from '../values/json/json.ts';
import type { Scope } from '../values/key.ts';

export { Failure } from '../values/failure.ts';
export { anyText, choice, duration, list, optional, repeated, single, size, wholeNumber, yesNo };
export type { CustomModule as Module, CustomHost as Host, CustomProvided as Provided };
export type { CustomOperation as Operation, CustomStep as Step, CustomTask as Task };

/**
 * A module, the default export of the file that `from` of `[module.<name>]` names. `Shared` is what
 * it opens once a process, `Parts` is what its operations get.
 */
export interface CustomModule<K extends Keys = Keys, Shared = unknown, Parts = unknown> {
  /** The keys of its section besides `from`, each with its parser, default and text. */
  readonly keys?: K;
  /** Its operations: HTTP, websocket, command line, OpenAPI and MCP have them. */
  readonly operations?: readonly CustomOperation<Parts>[];
  /** Opens what outlives a reload. The server does not start if it throws. */
  open?(process: CustomProcess): Shared | Promise<Shared>;
  /** Makes what depends on the settings; called at the start and at each reload. */
  provision?(host: CustomHost<FieldsOf<K>>, shared: Shared): CustomProvided<Parts>;
  /** Closes what `open` has opened, when the server stops. */
  close?(shared: Shared): void | Promise<void>;
}

/** The process that a module is opened in. */
export interface CustomProcess {
  /** The name of its section. */
  readonly name: string;
  /** A folder for its own files, in the data folder. */
  readonly folder: string;
  /** The folder of the ini file, where its relative paths start. */
  readonly iniFolder: string;
  /** The log of the server, whose lines name the module. It takes some hundred lines a minute. */
  readonly log: CustomLog;
}

/** Writes lines of the log: a message for people, and fields for programs. */
export interface CustomLog {
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** The surroundings of a module under one configuration. */
export interface CustomHost<Settings = unknown> extends CustomProcess {
  /** The values of its keys, by their names in camel case. */
  readonly settings: Settings;
  /**
   * Runs an operation with the rights of the server: `svc1.record.insert`. Resolves to its data;
   * rejects with a Failure.
   */
  run(operation: string, v?: object): Promise<unknown>;
}

/** What a module adds under one configuration. */
export interface CustomProvided<Parts = unknown> {
  /** What its operations get. */
  readonly parts?: Parts;
  /** Its steps in the way of requests for pages. */
  readonly steps?: readonly CustomStep[];
  /** What answers at `{base}/svc1/<name>/<path>`, by the first segment of the path. */
  readonly paths?: Readonly<Record<string, CustomHandler>>;
  /** Work in the background; one process of the server does it. */
  readonly tasks?: readonly CustomTask[];
  /** Closes what `provision` has made, when a reload has replaced it. */
  close?(): void | Promise<void>;
}

/** Answers a request. What it throws is the answer: a Failure as it says, all else is a 500. */
export type CustomHandler = (
  request: Request,
  client: { readonly address: string },
) => Response | Promise<Response>;

/** A step in the way of a request for a page. */
export interface CustomStep {
  /** Its name in `explain` and in the log. */
  readonly name: string;
  /**
   * Where it stands: `source` before the sources of Waymark, `fallback` behind them, `response`
   * around all of them, for what changes answers.
   */
  readonly at: 'source' | 'fallback' | 'response';
  /** One sentence for `explain`: what it does with a request. */
  readonly about: string;
  /** Answers, or calls `next` for the answer of the following steps, which it may change. */
  handle(
    request: Request,
    next: () => Promise<Response>,
    client: { readonly address: string },
  ): Response | Promise<Response>;
}

/** Work that is done again and again. */
export interface CustomTask {
  readonly name: string;
  /** Milliseconds from the end of one run to the next one. */
  readonly everyMs: number;
  run(signal: AbortSignal): void | Promise<void>;
}

/** An operation. Its name is `svc1.<module>.<name>`. */
export interface CustomOperation<Parts = unknown> {
  /** Lower-case letters and `_`. */
  readonly name: string;
  /** The scope that a caller needs; undefined if everybody may call it. */
  readonly scope?: Scope;
  /** One that writes answers to POST only. */
  readonly effect: 'reads' | 'writes';
  /** One sentence. */
  readonly summary: string;
  /** JSON Schema of the input. */
  readonly input: JsonObject;
  /** JSON Schema of the data. */
  readonly output: JsonObject;
  /** Answers with data; a Failure that it throws is the answer. */
  run(v: never, parts: Parts): unknown;
}

/** Says which types the parts of a module have. */
export function defineModule<K extends Keys, Shared, Parts>(
  module: CustomModule<K, Shared, Parts>,
): CustomModule<K, Shared, Parts> {
  return module;
}
