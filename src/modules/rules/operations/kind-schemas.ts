import type { JsonObject } from '../../../core/values/json/json.ts';
import { balances } from '../../proxy/balance.ts';
import { fetchRetriesMax, fetchSourcesMax, sourceWeightMax } from '../../../core/values/limits.ts';
import type { RuleKind } from '../rule.ts';
import { branchesMax } from '../../../core/pipeline/conditions/when.ts';

const texts = { type: 'array', maxItems: 64, items: { type: 'string' } } as const;
const sourceText = { type: 'string', maxLength: 4096 } as const;
const status = { type: 'integer', minimum: 200, maximum: 599 } as const;
/** What a source has to be. */
export const sourceWords =
  'an absolute http or https URL without a user, or a unix socket such as unix:/run/app.sock:/*, ' +
  'with at most one *, in its path or query';

/**
 * The schemas of enginedata by kind (docs/design/rendering.md#generic-pages,
 * docs/design/fetching.md#sources). Further members are allowed.
 */
export const kindSchemas: Readonly<Partial<Record<RuleKind, JsonObject>>> = {
  'content.fetch': {
    type: 'object',
    required: ['source'],
    properties: {
      source: {
        description: `${sourceWords}; or a list of up to ${fetchSourcesMax}`,
        anyOf: [
          sourceText,
          {
            type: 'array',
            minItems: 1,
            maxItems: fetchSourcesMax,
            uniqueItems: true,
            items: sourceText,
          },
        ],
      },
      headers: {
        type: 'object',
        description: 'header fields that are added to requests',
        maxProperties: 32,
        propertyNames: {
          pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
          description: 'the name of a header field, such as X-Shop',
        },
        additionalProperties: {
          type: 'string',
          pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
          description: 'one line of Latin-1 text',
        },
      },
      methods: {
        type: 'array',
        description:
          'the methods that are passed on, GET and HEAD by default; UPGRADE means websockets and ' +
          'other protocols',
        minItems: 1,
        maxItems: 32,
        items: {
          type: 'string',
          pattern: '^[A-Z][A-Z-]{0,31}$',
          description: 'a method in capitals, such as POST',
        },
      },
      as: {
        type: 'string',
        enum: ['application'],
        description:
          'application: all methods, cookies, Authorization, websockets and the Host of the ' +
          'client are passed on, and a source without a path gets the path of the request',
      },
      host: {
        type: 'string',
        maxLength: 255,
        description: 'the Host that the source gets: client, source, or a host',
      },
      timeout: {
        type: 'string',
        pattern: '^[0-9]{1,6} ?(ms|s|m|h)$',
        description: 'how long the source may take or pause, such as 30s; at most 24h',
      },
      request_headers: {
        type: 'object',
        description:
          'header fields of requests with variables such as ${client.ip}; an empty value removes',
        maxProperties: 32,
        propertyNames: {
          pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
          description: 'the name of a header field, such as X-Shop',
        },
        additionalProperties: {
          type: 'string',
          maxLength: 4096,
          pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
          description: 'one line of Latin-1 text',
        },
      },
      balance: {
        type: 'string',
        enum: [...balances],
        description:
          'which of several sources gets a request: the one with the least load, the next one, ' +
          'or always the same for a visitor, by a cookie or by the address',
      },
      weights: {
        type: 'array',
        maxItems: fetchSourcesMax,
        items: { type: 'integer', minimum: 0, maximum: sourceWeightMax },
        description:
          'the share of each source, in their order; one of 0 gets requests if all others fail',
      },
      retries: {
        type: 'integer',
        minimum: 0,
        maximum: fetchRetriesMax,
        description: 'how many other sources get a request that failed; 2 by default',
      },
      http_version: {
        type: 'string',
        enum: ['1.1', '2'],
        description: 'the version of HTTP that the source gets; 2 is h2c without TLS',
      },
      cache_cookies: {
        type: 'boolean',
        description:
          'whether the cache stores an answer that sets cookies, without them; otherwise it does ' +
          'not store it',
      },
      resolve: {
        type: 'boolean',
        description: 'whether each address of the name of a source is a server of its own',
      },
      health: {
        type: 'string',
        maxLength: 512,
        pattern: '^/[\\x21\\x22\\x24-\\x7e]*$',
        description: 'a path to which each source gets a GET at intervals, such as /status',
      },
      health_interval: {
        type: 'string',
        pattern: '^[0-9]{1,6} ?(ms|s|m|h)$',
        description: 'the time between two health checks, such as 10s',
      },
      pass: {
        ...texts,
        description:
          'names of header fields of the client or the source that are otherwise not passed on',
      },
    },
  },
  resolve: {
    type: 'object',
    properties: {
      target: {
        type: 'string',
        description: 'where it leads: a path of this site, an http(s) URL, or key:<another key>',
      },
      html: { type: 'string', description: 'a page in place of a redirect' },
      status: { ...status, description: 'the status; 302 by default, 200 with html' },
      forward_query: {
        type: 'boolean',
        description: 'whether the query of the request is added to the target',
      },
      when: {
        type: 'array',
        maxItems: branchesMax,
        description:
          'branches; the first one whose conditions (if) all hold replaces the above, and may ' +
          'add header fields and cookies of its own (headers, cookies)',
      },
    },
  },
};
