import type { Answer, TestSite } from '../../harness.ts';

/** Calls an operation as the admin. */
export type Call = (
  name: string,
  v: object,
  more?: { vk?: string; qk?: string; draft?: string },
) => Promise<Answer>;

/** The transports of operations: the same expectations apply to all. */
export const transports: Readonly<Record<string, (site: TestSite) => Promise<Call>>> = {
  HTTP: (site) => Promise.resolve((name, v, more) => site.call(name, v, more)),
  websocket: async (site) => {
    const socket = await site.socket(site.adminKey);
    return (name, v, more) => socket.call(name, v, more);
  },
};
