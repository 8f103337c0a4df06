import { defineModule } from '../../core/module.ts';
import { getResolve, linkHtm } from './get-resolve.ts';
import { listTokens, mintToken, revokeToken } from './tokens.ts';
import { breadcrumbVisits } from './visits.ts';

/** Addresses of things on packages and paper: rules of the kind `resolve`. */
export const breadcrumbs = defineModule({
  name: 'breadcrumbs',
  needs: ['headers', 'keys', 'rules', 'visitors', 'visits'],
  operations: [getResolve, linkHtm, breadcrumbVisits, mintToken, listTokens, revokeToken],
  commands: [
    {
      name: 'breadcrumb',
      summary: 'show the visits of breadcrumbs',
      load: async () => (await import('./command.ts')).defineBreadcrumb,
    },
  ],
});
