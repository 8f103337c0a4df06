import { authSection, serverSection, tlsDefaults, tlsHosts } from './core/config/core-sections.ts';
import type { IniSection } from './core/config/ini-section.ts';
import { moduleSection } from './core/config/module-sections.ts';
import { accessSection } from './modules/access/section.ts';
import { acmeHostSection, acmeSection } from './modules/acme/section.ts';
import { assetSection } from './modules/assets/section.ts';
import { clusterSection } from './modules/cluster/section.ts';
import { reviewSection } from './modules/drafts/section.ts';
import { diskHeadersSection, diskSection } from './modules/files/section.ts';
import { headersSection } from './modules/headers/section.ts';
import { loginSection, namedLoginSection } from './modules/login/section.ts';
import { logSection, pathLogSection } from './modules/logs/section.ts';
import { mcpSection } from './modules/mcp/section.ts';
import { nodeSection } from './modules/nodes/section.ts';
import {
  fetchSection,
  proxyHeadersSection,
  proxyRequestSection,
  proxySection,
} from './modules/proxy/section.ts';
import { rateSection } from './modules/rates/section.ts';
import { mountFilesSection, redirectSection, rewriteSection } from './modules/redirects/section.ts';
import { engineSection } from './modules/rules/section.ts';
import { eventSection, tableSection } from './modules/tables/section.ts';
import { telemetrySection } from './modules/telemetry/section.ts';
import { geoSection, visitorSection } from './modules/visitors/section.ts';
import { statsSection } from './modules/visits/section.ts';
import { webhookSection } from './modules/webhooks/section.ts';

/**
 * The sections of the ini file, in the order in which `check` prints them. Sections with one header
 * stand in the order of their keys.
 */
export const iniSections: readonly IniSection[] = [
  serverSection,
  ...[tlsDefaults, acmeSection, tlsHosts, acmeHostSection],
  ...[diskSection, mountFilesSection, diskHeadersSection],
  ...[proxySection, proxyRequestSection, proxyHeadersSection],
  headersSection,
  ...[redirectSection, rewriteSection],
  ...[accessSection, rateSection],
  ...[loginSection, namedLoginSection],
  fetchSection,
  ...[authSection, visitorSection],
  engineSection,
  ...[tableSection, eventSection],
  webhookSection,
  ...[nodeSection, clusterSection],
  assetSection,
  geoSection,
  reviewSection,
  mcpSection,
  statsSection,
  ...[logSection, pathLogSection],
  telemetrySection,
  moduleSection,
];
