import type { LeveledLine } from '../../core/report/line-formats.ts';
import { syslogMessageBytesMax } from '../../core/report/limits.ts';

/** Where messages to syslog go. */
export type SyslogAddress =
  | { readonly kind: 'udp' | 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** What every message of a process to syslog says about it. */
export interface SyslogOrigin {
  /** The name of this machine. */
  readonly host: string;
  readonly pid: number;
}

/** The facility of system daemons. */
const facility = 3;

/**
 * Writes a message of RFC 5424 §6, without structured data. Its MSGID is `access` for a request. A
 * text that is too long is cut, as RFC 5424 §6.1 allows.
 */
export function syslogMessage(
  { severity, text, isRequest }: LeveledLine,
  { host, pid }: SyslogOrigin,
  nowMs: number,
): Buffer {
  const priority = facility * 8 + severity;
  const time = new Date(nowMs).toISOString();
  const name = host.replace(/[^\x21-\x7e]/g, '').slice(0, 255) || '-';
  const id = isRequest ? 'access' : '-';
  const head = `<${priority}>1 ${time} ${name} waymark ${pid} ${id} - `;
  const message = Buffer.from(head + text);
  if (message.length <= syslogMessageBytesMax) return message;
  // Not within a character: its later bytes are 10xxxxxx.
  let end = syslogMessageBytesMax;
  while (((message[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return message.subarray(0, end);
}
