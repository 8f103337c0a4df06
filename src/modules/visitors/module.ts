import { type Module } from '../../core/module.ts';

/** The user, device, language and place of a visitor: `[auth]`, `[geo]`. */
export const visitors: Module = {
  name: 'visitors',
};
