import { readFile } from 'node:fs/promises';
import { createWaymarkClient, type WaymarkClient } from '../peers/waymark-client.ts';
import type { Store } from '../../core/log/store.ts';
import { centralTimeoutMs } from './limits.ts';
import { rowLogPart } from './log/open-row-log.ts';

/** The header field with the generation of a node's log. */
export const generationName = 'waymark-generation';

/**
 * Makes the client of a node for its centre. Each request has the generation of the node's log, so
 * that a former centre refuses it (docs/design/nodes.md#a-new-centre).
 */
export function createCentralClient(url: string, { part }: Pick<Store, 'part'>): WaymarkClient {
  return createWaymarkClient(url, {
    timeoutMs: centralTimeoutMs,
    fields: () => ({ [generationName]: String(part(rowLogPart).identity().generation) }),
  });
}

/** Reads the API key of this node. Rejects if the file cannot be read. */
export async function readNodeKey(file: string): Promise<string> {
  return (await readFile(file, 'utf8')).trim();
}
