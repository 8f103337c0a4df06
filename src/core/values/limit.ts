/**
 * The limits that clients can exceed, by their names in the log and in the documentation, with the
 * message that the log has then. The sizes are in the `limits.ts` of each folder, and in the ini
 * file; a test compares docs/reference/limits.md with them.
 */
export const limitMessages = {
  connections: 'the process had too many connections: it closed some at once',
  connections_per_address: 'one address opened too many connections',
  open_files: 'the process ran out of file descriptors: it closed idle connections',
  handshake_time: 'a TLS handshake did not complete in time',
  header_time: 'a header section did not arrive in time',
  request_time: 'a request or a websocket message did not arrive in time',
  slow_content: 'the content of a request arrived too slowly',
  target_size: 'a request line was too long',
  header_size: 'a header section was too large',
  content_size: 'the content of a request was too large',
  content_coding: 'the content of a request was compressed',
  input_structure: 'the input of an operation was nested too deeply or had too many values',
  requests_held: 'unanswered requests held too many bytes: some were refused',
  unread_content: 'a client sent too much content that the server had not requested',
  unread_answer: 'a client did not read its answer',
  slow_answer: 'a client read its answer too slowly',
  unread_answers: 'unread answers held too many bytes: some requests were refused',
  fetches: 'one address had too many requests in progress at other servers',
  ranges: 'a request had too many ranges: the whole page was sent',
  http2_resets: 'an HTTP/2 client reset too many requests',
  http2_pings: 'an HTTP/2 client sent too many PING and SETTINGS frames',
  http2_frames: 'an HTTP/2 client sent malformed or too many frames',
  http2_heads: 'the head of an HTTP/2 request, or its preface, did not arrive in time',
  http2_streams: 'too many HTTP/2 requests were open: some were refused',
  tunnels: 'a client, or all clients together, had too many websockets to sources',
  wrong_keys: 'one address sent too many wrong API keys',
  wrong_passwords: 'one address, or several for one name, sent too many wrong passwords',
  password_checks: 'too many passwords waited to be checked: some requests were refused',
  outbox: 'the outbox is full (outbox_entries, outbox_size): events and rows were refused',
  anonymous_writes: 'one address wrote too many rows without a key or user',
  websocket_frames: 'a websocket sent too large, too many or malformed frames',
  websocket_pings: 'a websocket sent too many pings',
  uploads: 'a client, or all clients together, had too many uploads at the same time',
  sign_ins: 'too many people signed in at the same time: some were refused',
  live_access: 'too many clients read the live access log: one was refused',
  live_state: 'too many clients watch the state of the server: one was refused',
  subscriptions: 'a client, or all clients together, had too many subscriptions',
  renderings: 'too many pages waited for the threads that render templates: some were refused',
  websocket_unread: 'a websocket did not read its answers',
} as const;

/** The name of a limit. */
export type LimitName = keyof typeof limitMessages;
