import { type Module } from '../../core/module.ts';

/** Tables whose rows another server has. */
export const hosts: Module = {
  name: 'hosts',
  needs: ['cluster', 'peers', 'tables'],
};
