import { viewOfDraft } from '../../../modules/drafts/log/draft-reads.ts';
import type { AccessConfig, Config } from '../../../core/config/config.ts';
import { loginProviders } from '../../../modules/login/section.ts';
import type { Store } from '../../../core/log/store.ts';
import type { Offers } from '../../../core/module.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import type { SiteParts } from './site.ts';
import { newId, now } from '../../../core/values/clock.ts';
import { type AccessGuard, createAccessGuard } from '../../../modules/access/access-guard.ts';
import { openNetworkFile } from '../../../modules/access/network-file.ts';
import { openPasswordFile } from '../../../modules/access/password-hash.ts';
import { openLinkKeys } from '../../../modules/access/signed-links.ts';
import { createAssetReader, writeAssetTable } from '../../../modules/assets/asset.ts';
import { type IndexPages, createIndexPages } from '../../../modules/console/index-pages.ts';
import type { Disk } from '../../../modules/files/disk.ts';
import { matchesPattern } from '../../../modules/headers/response-headers.ts';
import type { Login } from '../../../modules/login/login.ts';
import { createAccessRules } from '../../../modules/logs/access-rules.ts';
import { configuredProxies } from '../../../modules/proxy/configured-proxies.ts';
import type { SourceDiallers } from '../../../modules/proxy/source-diallers.ts';
import { configuredRedirects, mountRedirects } from '../../../modules/redirects/redirect-lists.ts';
import { createRewriter } from '../../../modules/redirects/rewrite-step.ts';
import type { RowReader } from '../../../modules/rules/site-access.ts';
import { createGenericPages } from '../../../modules/rules/pages/generic-pages.ts';
import type { AppContext, ContentContext } from './context.ts';
import { type SourceAccess, composeFetch } from './transport.ts';
import { storedDrafts } from '../../../modules/drafts/log/family.ts';
import { storedTables } from '../../../modules/tables/log/family.ts';

/** What the site answers from, in its order, and the rules about who may see what. */
export function composeSite(
  config: Config,
  context: AppContext,
  {
    disk,
    pageRows,
    login,
    steps,
    ...sources
  }: {
    readonly disk: Disk;
    readonly pageRows: RowReader;
    readonly steps: SiteParts['steps'];
    readonly login: Login | undefined;
  } & SourceAccess,
): SiteParts {
  const { store, content } = context;
  const { rules, publicFiles, ownFiles, storedPages: stored, renderedPages: rendered } = content;
  const generic = createGenericPages({
    engines: config.engines,
    builtInPage: publicFiles.page({ base: config.server.base, nonce: '' }),
    ownFiles,
  });
  const fetch = composeFetch(config, context, sources);
  const proxies = configuredProxies(config.proxies);
  for (const proxy of proxies) sources.checks.watch(proxy);
  const configured = {
    ...{ proxies, steps },
    redirects: config.redirects.map(configuredRedirects),
    mountRedirects: config.disk.map(mountRedirects),
    rewriter: createRewriter(config.rewrites),
    access: composeAccess(config, context, { diallers: sources.diallers, login }),
  };
  const assets = {
    assets: createAssetReader(store.of(storedTables)),
    assetPages: content.assetPages,
  };
  return {
    rules,
    ...configured,
    ...assets,
    disk,
    stored,
    generic,
    rendered,
    pageRows,
    fetch,
  };
}

/** Who may see what. Password files are read at once, so that the log names their mistakes. */
function composeAccess(
  config: Config,
  {
    callers: { passwords },
    sources: { places },
    logs,
  }: Pick<AppContext, 'callers' | 'logs' | 'sources'>,
  { diallers, login }: { readonly diallers: SourceDiallers; readonly login: Login | undefined },
): AccessGuard | undefined {
  const { userHeader, jwtJwks } = config.auth;
  // A proxy or a token may name another user than the session.
  const isAlone = userHeader === undefined && jwtJwks === undefined;
  return createAccessGuard(accessRules(config), config.disk, {
    passwords,
    places,
    openFile(file) {
      const opened = openPasswordFile(file, { now, log: logs.log });
      void opened.prepare();
      return opened;
    },
    openKeys(file) {
      const opened = openLinkKeys(file, { now, log: logs.log });
      void opened.prepare();
      return opened;
    },
    openNetworks(file) {
      const opened = openNetworkFile(file, { now, log: logs.log });
      void opened.ready();
      return opened;
    },
    dialler: () => diallers.of({ ini: { connectTimeoutMs: undefined } }),
    ...(login !== undefined &&
      isAlone && { userOf: ({ cookie, isSecure }) => login.userOf(cookie, isSecure) }),
  });
}

/** The access rules, in which `login` is the path to which browsers are sent. */
function accessRules(config: Config): readonly AccessConfig[] {
  const { access } = config;
  const { base } = config.server;
  const hasProvider = loginProviders(config).length > 0;
  const own = `${base}/svc1/login/sign-in`;
  return access.map((rule) => {
    const asksUsers = rule.users.length + rule.roles.length > 0;
    const word = rule.login ?? (asksUsers && hasProvider ? 'yes' : 'no');
    return { ...rule, login: word === 'yes' ? own : word === 'no' ? undefined : word };
  });
}

/** What changes the lines of the access log, or leaves them out. */
export function composeAccessLines({ log }: Config): Serving['accessRules'] {
  return createAccessRules(log, { matches: matchesPattern, random: Math.random });
}

/** The pages at the service's own addresses that lead to the others. */
export function composeIndexPages(
  config: Config,
  { publicFiles, consoleFiles }: ContentContext,
  { hasDocs = false }: Partial<Offers>,
): IndexPages {
  const { console, base } = config.server;
  const consoleAt = console === 'yes' ? `${base}/svc1/console/` : `${console}${base}/svc1/console/`;
  const hasNone = console === 'no' || consoleFiles.size === 0;
  return createIndexPages({
    base,
    engines: config.engines,
    publicFiles,
    hasDocs,
    console: hasNone ? undefined : consoleAt,
  });
}

/** What uploads need, and the downloads of assets by their names. */
export function composeUploads(
  store: Store,
  { assetFiles, assetPages, missingFiles }: ContentContext,
): Serving['assets'] {
  return {
    files: assetFiles,
    pages: assetPages,
    missing: missingFiles,
    share: async (sha256) => {
      if (store.shared !== undefined) await assetFiles.share(sha256, store.shared.files);
    },
    ...createAssetReader(store.of(storedTables)),
    inDraft(given) {
      const draft = store.of(storedDrafts).draftNamed(given) ?? store.of(storedDrafts).draft(given);
      return draft?.state === 'open'
        ? createAssetReader(store.view(viewOfDraft(draft)).of(storedTables))
        : undefined;
    },
    prepareTable: () => writeAssetTable(store, newId),
  };
}
