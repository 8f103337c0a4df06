import { defineModule } from '../../core/module.ts';
import { endLogin, listLogins, openConsole } from './sessions/logins.ts';
import {
  authenticateSession,
  endSession,
  insertSession,
  listSessions,
  readSession,
  unsubscribeSession,
} from './sessions/sessions.ts';
import { consolePath, publicPath } from './paths.ts';

/** The console, its sessions, and other files for browsers. */
export const console = defineModule({
  name: 'console',
  needs: ['compression', 'keys', 'login', 'rules'],
  operations: [
    authenticateSession,
    unsubscribeSession,
    insertSession,
    readSession,
    listSessions,
    endSession,
    listLogins,
    endLogin,
    openConsole,
  ],
  commands: [
    {
      name: 'login',
      summary: 'show and end the sessions of visitors who have signed in',
      load: async () => (await import('./command.ts')).defineLogin,
    },
  ],
  provision: () => ({ paths: { console: consolePath, '*': publicPath } }),
});
