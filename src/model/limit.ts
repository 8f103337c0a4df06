/**
 * The limits that hostile clients run into, by the name under which the log tells of them, each
 * with what it says then. Their sizes stand in limits.ts and the ini file.
 */
export const limitSentences = {
  connections: 'more connections than a process takes: some were closed at once',
  connections_per_address: 'more connections from one address than it may have',
  open_files: 'no more files could be opened: idle connections were closed',
  handshake_time: 'a TLS handshake did not come to its end in time',
  header_time: 'a header section did not arrive in time',
  request_time: 'a request or a message of a websocket did not arrive in time',
  target_size: 'a request line was too long',
  header_size: 'a header section was too large',
  content_size: 'the content of a request was too large',
  content_coding: 'the content of a request was compressed',
  input_structure: 'the input of an operation nested too deeply or had too many values',
  requests_held: 'requests that were not answered yet held too many bytes: some were refused',
  unread_content: 'content kept coming that nobody had asked for',
  unread_answer: 'an answer was not read',
  unread_answers: 'answers that were not read yet held too many bytes: some requests were refused',
  pipelined: 'too many requests were sent ahead',
  fetches: 'other servers were answering too many requests of one address',
  ranges: 'too many ranges of a page were asked for: it was sent whole',
  http2_resets: 'a client of HTTP/2 took back too many requests',
  http2_pings: 'a client of HTTP/2 sent too many PING and SETTINGS',
  http2_frames: 'a client of HTTP/2 sent frames that are malformed or too many',
  http2_heads: 'a head of HTTP/2 had too many fields, was malformed or did not end in time',
  http2_streams: 'more requests of HTTP/2 were open than a process takes: some were refused',
  tunnels: 'a client wanted more websockets to sources than it may have, or than there are left',
  wrong_keys: 'one address sent too many wrong API keys',
  websocket_frames: 'a websocket sent frames that are too large, too many or malformed',
  websocket_pings: 'a websocket sent too many pings',
  subscriptions: 'a client wanted more subscriptions than it may have, or than there are left',
  websocket_unread: 'a websocket did not read its answers',
} as const;

/** The name of a limit. */
export type LimitName = keyof typeof limitSentences;
