import { type ChildProcess, spawn } from 'node:child_process';
import type { DnsRecord, DnsRecords } from './dns-record.ts';

/** How long a program that changes records may take, and how much of its complaints is read. */
const dnsHookMs = 60_000;
const dnsHookOutputBytesMax = 4_096;

/**
 * Changes records by a program of the operator, which gets `present` or `cleanup`, the name and the
 * value as its arguments, and as ACME_ACTION, ACME_NAME and ACME_VALUE. No shell reads them. It has
 * done its work when it exits with 0, within dnsHookMs.
 */
export function dnsHook(program: string): DnsRecords {
  return {
    present: (record, signal) => run(program, 'present', record, signal),
    cleanup: (record, signal) => run(program, 'cleanup', record, signal),
  };
}

async function run(
  program: string,
  action: 'present' | 'cleanup',
  { name, value }: DnsRecord,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const child = spawn(program, [action, name, value], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own: what the program has started ends with it.
    detached: true,
    env: { ...process.env, ACME_ACTION: action, ACME_NAME: name, ACME_VALUE: value },
  });
  const kill = (): void => {
    killGroup(child);
  };
  const timer = setTimeout(kill, dnsHookMs);
  signal.addEventListener('abort', kill);
  try {
    const { code, output } = await ended(child);
    signal.throwIfAborted();
    if (code === 0) return;
    const last = output.trim().split('\n').at(-1) ?? '';
    const why = code === null ? `was ended after ${dnsHookMs / 1_000} s` : `ended with ${code}`;
    throw new Error(`acme_dns_hook ${action} ${name} ${why}${last === '' ? '' : `: ${last}`}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', kill);
    kill();
  }
}

/** The exit code of a program, null if it was killed, and the end of what it has complained of. */
function ended(
  child: ChildProcess,
): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve, reject) => {
    let output = Buffer.alloc(0);
    child.stderr?.on('data', (chunk: Buffer) => {
      output = Buffer.concat([output, chunk]).subarray(-dnsHookOutputBytesMax);
    });
    child.once('error', (error) => {
      reject(new Error(`acme_dns_hook cannot be started: ${error.message}`));
    });
    // Not `close`: a program that it has left behind may hold its output open.
    child.once('exit', (code) => {
      resolve({ code, output: output.toString() });
    });
  });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}
