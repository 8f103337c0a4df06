import { assembleConfig as assemble } from '../src/core/config/assemble.ts';
import type { Config } from '../src/core/config/config.ts';
import { authSection, serverSection, tlsHosts } from '../src/core/config/core-sections.ts';
import type { Keys } from '../src/core/config/ini-key.ts';
import {
  type ParsedIni,
  type ParsedSection,
  sectionKinds,
} from '../src/core/config/ini-section.ts';
import { parseIni as parse } from '../src/core/config/parse.ts';
import { readConfig as read } from '../src/core/config/read.ts';
import type { Environment } from '../src/core/config/variables.ts';
import type { JsonObject } from '../src/core/values/json/json.ts';
import { diskHeadersSection, diskSection } from '../src/modules/files/section.ts';
import { logSection } from '../src/modules/logs/section.ts';
import { nodeSection } from '../src/modules/nodes/section.ts';
import { fetchSection } from '../src/modules/proxy/section.ts';
import { tableSection } from '../src/modules/tables/section.ts';
import { webhookSection } from '../src/modules/webhooks/section.ts';
import { iniSections } from '../src/sections.ts';

/** The keys of each kind of section by its header. */
export const sections: Readonly<Record<string, Keys>> = Object.fromEntries(
  sectionKinds(iniSections).flatMap(({ header, keys, tail }) =>
    tail === undefined ? [[header, keys]] : [],
  ),
);

/** Parses an ini text that may have all sections; some of them are also members. */
export function parseIni(text: string, { env }: { readonly env: Environment }) {
  const ini = parse(text, { env, sections: iniSections });
  return {
    ...ini,
    server: ini.one(serverSection),
    hosts: ini.all(tlsHosts),
    disk: ini.all(diskSection),
    headers: ini.all(diskHeadersSection),
    fetch: ini.one(fetchSection),
    auth: ini.one(authSection),
    tables: ini.all(tableSection),
    webhook: ini.one(webhookSection),
    node: ini.one(nodeSection),
    log: ini.one(logSection),
  };
}

/** The configuration of an ini text, of which no files are read: tables have these definitions. */
export function assembleConfig(
  ini: ParsedIni,
  {
    definitions,
    ...around
  }: Omit<Parameters<typeof assemble>[1], 'contents'> & {
    readonly definitions?: ReadonlyMap<string, JsonObject>;
  },
): Config {
  const contents = new Map<ParsedSection, object>(
    ini.all(tableSection).flatMap((table) => {
      const definition = definitions?.get(table.name);
      return definition === undefined ? [] : [[table, { definition }]];
    }),
  );
  return assemble(ini, { ...around, contents });
}

/** Reads an ini file that may have all sections. */
export function readConfig(source: Omit<Parameters<typeof read>[0], 'sections'>) {
  return read({ ...source, sections: iniSections });
}
