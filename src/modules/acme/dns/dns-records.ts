import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { Resolver, lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import type { NameServer } from '../../../core/config/addresses.ts';
import type { AcmeConfig } from '../../../core/config/config.ts';
import { now } from '../../../core/values/clock.ts';
import { readTsigKey } from './tsig-key.ts';
import { type DnsRecord, type DnsRecords, updateMessage, updateRefusal } from './update-message.ts';

/** How long a name server may take for a change, and for a question. */
const dnsUpdateMs = 15_000;
const dnsQueryMs = 2_000;

/** The longest answer of a name server. */
const dnsAnswerBytesMax = 65_535;

/** The codes of an answer that has no such record. */
const isWithout: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'EREFUSED', 'ESERVFAIL']);

/** How long a program that changes records may take, and how much of its complaints is read. */
const dnsHookMs = 60_000;
const dnsHookOutputBytesMax = 4_096;

/** The way to change records that the ini file names; undefined for none. */
export function createDnsRecords({
  dnsHook: program,
  dnsServer: server,
  dnsKeyFile: keyFile,
}: Pick<AcmeConfig, 'dnsHook' | 'dnsServer' | 'dnsKeyFile'>): DnsRecords | undefined {
  if (program !== undefined) return dnsHook(program);
  return server === undefined || keyFile === undefined ? undefined : dnsUpdate({ server, keyFile });
}

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

/**
 * Changes records at the primary name server of a zone (RFC 2136), signed with the key of a file
 * (TSIG, RFC 8945).
 */
export function dnsUpdate({
  server,
  keyFile,
}: {
  readonly server: NameServer;
  readonly keyFile: string;
}): DnsRecords {
  const change = async (
    action: 'add' | 'remove',
    record: DnsRecord,
    signal: AbortSignal,
  ): Promise<void> => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(dnsUpdateMs)]);
    const key = await readTsigKey(keyFile);
    if ('refused' in key) throw new Error(`acme_dns_key ${key.refused}.`);
    const address = await addressOf(server);
    const zone = await zoneOf(record.name, { ...server, address });
    const update = updateMessage(action, record, {
      zone,
      key,
      id: randomInt(65_536),
      nowMs: now(),
    });
    const answer = await exchange(update.bytes, { ...server, address }, limit);
    const refusal = updateRefusal(answer, update, key);
    if (refusal !== undefined) throw new Error(`${nameOf(server)} ${refusal}.`);
  };
  return {
    present: (record, signal) => change('add', record, signal),
    cleanup: (record, signal) => change('remove', record, signal),
  };
}

interface AddressedServer extends NameServer {
  readonly address: string;
}

function nameOf({ host, port }: NameServer): string {
  return `The name server ${host}:${port}`;
}

async function addressOf(server: NameServer): Promise<string> {
  try {
    return (await lookup(server.host)).address;
  } catch (cause) {
    throw new Error(`${nameOf(server)} is not found.`, { cause });
  }
}

/** The zone of a name: the longest end of it that has a SOA record at the server. */
async function zoneOf(name: string, server: AddressedServer): Promise<string> {
  const resolver = new Resolver({ timeout: dnsQueryMs, tries: 2 });
  const host = server.address.includes(':') ? `[${server.address}]` : server.address;
  resolver.setServers([`${host}:${server.port}`]);
  const labels = name.split('.');
  for (let at = 0; at < labels.length - 1; at += 1) {
    const zone = labels.slice(at).join('.');
    try {
      await resolver.resolveSoa(zone);
      return zone;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (!isWithout.has(code)) {
        throw new Error(`${nameOf(server)} does not answer (${code}).`, { cause: error });
      }
    }
  }
  throw new Error(`${nameOf(server)} has no zone for ${name}.`);
}

/** Sends a message over TCP (RFC 7766 §8); resolves with the answer. */
function exchange(message: Buffer, server: AddressedServer, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.address, port: server.port, signal });
    let received = Buffer.alloc(0);
    const fail = (cause?: unknown): void => {
      socket.destroy();
      reject(new Error(`${nameOf(server)} does not answer.`, { cause }));
    };
    socket.once('error', fail).once('close', fail);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const bytes = received.length < 2 ? undefined : received.readUInt16BE(0);
      if (bytes === undefined || received.length < 2 + bytes) {
        if (received.length > 2 + dnsAnswerBytesMax) fail();
        return;
      }
      socket.destroy();
      resolve(received.subarray(2, 2 + bytes));
    });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length);
    socket.write(Buffer.concat([length, message]));
  });
}
