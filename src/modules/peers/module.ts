import { type Module } from '../../core/module.ts';

/** The client of other servers of Waymark. */
export const peers: Module = {
  name: 'peers',
};
