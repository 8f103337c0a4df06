import type { LoginConfig } from '../../core/config/config.ts';
import { escapeHtml, pageFields, plainPage } from '../../core/http/content/page.ts';
import { parseQuery } from '../../core/http/query.ts';
import { type Reply, noBody } from '../../core/http/reply.ts';

/** The parameters of a sign-in that the links keep. */
const kept: ReadonlySet<string> = new Set(['return_to', 'console']);

/** The page on which a visitor chooses one of several providers; its links go on with the query. */
export function choicePage(
  providers: readonly Pick<LoginConfig, 'name' | 'title' | 'issuer'>[],
  { query, method }: { readonly query: string; readonly method: string },
): Reply {
  const given = parseQuery(query).filter((one) => kept.has(one.name));
  const items = providers.map(({ name, title, issuer }) => {
    const all = [...given, { name: 'provider', value: name }];
    const pairs = all.map((one) => `${one.name}=${encodeURIComponent(one.value.toWellFormed())}`);
    const href = `sign-in?${pairs.join('&')}`;
    return `<li><a href="${escapeHtml(href)}">${escapeHtml(title ?? new URL(issuer).host)}</a>`;
  });
  const list = `\n<ul>\n${items.join('\n')}\n</ul>`;
  const bytes = Buffer.from(plainPage('Sign in', 'Choose where you have an account.', list));
  return {
    status: 200,
    fields: [
      ...['Content-Type', 'text/html; charset=utf-8', 'Content-Length', String(bytes.length)],
      ...['Cache-Control', 'no-store', 'Referrer-Policy', 'no-referrer', ...pageFields],
      // No other site shows it in a frame, to have it clicked unseen.
      'Content-Security-Policy',
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    ],
    body: method === 'HEAD' ? noBody : { kind: 'bytes', bytes },
    source: 'svc1',
  };
}
