import { randomBytes } from 'node:crypto';
import type { Config } from '../../../core/config/config.ts';
import { httpsStep } from '../../../core/pipeline/https-redirect.ts';
import { callerOf } from '../../../core/pipeline/incoming-request.ts';
import { ownSteps } from '../../../core/pipeline/own-steps.ts';
import type { Step } from '../../../core/pipeline/pipeline.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import { challengeStep } from '../../../modules/acme/step.ts';
import { consoleStep } from '../../../modules/console/step.ts';
import { previewStep } from '../../../modules/drafts/step.ts';
import {
  type HeaderRule,
  type ResponseHeaders,
  createResponseHeaders,
  strictFields,
} from '../../../modules/headers/response-headers.ts';
import { fieldsStep } from '../../../modules/headers/step.ts';
import { signInStep } from '../../../modules/login/step.ts';
import { ratesSteps } from '../../../modules/rates/step.ts';
import { proxyId } from '../../../modules/rules/rule.ts';
import type { AppContext } from './context.ts';

/** The steps of a site that do not depend on page rules. */
export function composeSteps(
  config: Config,
  { port, signedIn }: Pick<AppContext, 'port' | 'signedIn'>,
  {
    rates,
    authenticate,
    previews,
    headers,
  }: Pick<Serving, 'rates' | 'authenticate' | 'previews'> & { readonly headers: PageHeaders },
): readonly Step[] {
  const { base } = config.server;
  const { rules, change } = headers;
  return [
    ...ownSteps(base),
    challengeStep(() => port.tls()?.acme),
    httpsStep(() => {
      const { certificates } = port.tls() ?? {};
      return certificates && { certificates, port: port.tlsPort(), config };
    }),
    ...(rates === undefined
      ? []
      : ratesSteps(rates, (incoming) => callerOf({ authenticate }, incoming))),
    consoleStep(config),
    signInStep(signedIn),
    previewStep(previews, base),
    ...(change === undefined ? [] : [fieldsStep(rules, change, base)]),
  ];
}

/** The changes of the fields of answers, and the rules that they come from. */
interface PageHeaders {
  readonly rules: readonly HeaderRule[];
  /** Undefined without rules. */
  readonly change: ResponseHeaders | undefined;
}

/** The changes of answers: those of mounts and proxies, then those for paths in their order. */
export function composeHeaders(config: Config): PageHeaders {
  const rules = headerRulesOf(config);
  return { rules, change: createResponseHeaders(rules, newNonce) };
}

function headerRulesOf({ disk, proxies, headers }: Config): readonly HeaderRule[] {
  const ofMounts = disk.flatMap(({ name, headerBlocks }) =>
    headerBlocks.map(({ line, origin, path, fields }) => {
      const named = `line ${line} of headers_file of [disk.${name}]`;
      const place = { name: named, origin, paths: [path], hasPlaceholders: true };
      return { ...place, source: `disk:${name}`, fields };
    }),
  );
  const ofProxies = proxies
    .filter(({ headers: fields }) => fields.length > 0)
    .map(({ name, headers: fields }) => {
      const place = { name: `[proxy.${name}.headers]`, origin: '*', paths: ['/*'] };
      return { ...place, source: proxyId(name), fields };
    });
  const ofPaths = headers.map(({ name, origin, path: paths, security, fields }) => {
    const strict = security === undefined ? [] : strictFields;
    const place = { name: `[headers.${name}]`, origin, paths, source: undefined };
    return { ...place, fields: [...strict, ...fields] };
  });
  return [...ofMounts, ...ofProxies, ...ofPaths];
}

/** A nonce with 128 random bits (CSP 3 §7.1). */
function newNonce(): string {
  return randomBytes(16).toString('base64');
}
