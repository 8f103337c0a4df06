import { type Module } from '../../core/module.ts';

/** Header fields of answers: `[headers.<name>]`. */
export const headers: Module = {
  name: 'headers',
};
