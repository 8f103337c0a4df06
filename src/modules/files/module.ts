import { type Module } from '../../core/module.ts';

/** Folders that are served: `[disk.<name>]`. */
export const files: Module = {
  name: 'files',
  needs: ['compression'],
};
