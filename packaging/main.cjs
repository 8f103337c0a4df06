'use strict';
// The program of the single executable (docs/design/packages.md): puts its files into a private
// folder, where LMDB's addon and the threads can be loaded, and runs the command line from there.
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const module_ = require('node:module');
const { homedir, tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const sea = require('node:sea');
const { isMainThread } = require('node:worker_threads');

// As in bin/waymark.js: without handlers, these signals open the debugger or end the process.
process.on('SIGUSR1', () => undefined);
process.on('SIGUSR2', () => undefined);

/** The files by their path, with their SHA-256; its own SHA-256 names the folder. */
const manifestText = sea.getAsset('manifest.json', 'utf8');
const manifest = JSON.parse(manifestText);
const name = sha256(manifestText).slice(0, 32);

/** The file whose time is that of the last check of the others. */
const checkedFile = 'checked';

const folder = findFolder();
module_.enableCompileCache(join(folder, 'compile-cache'));
const words = process.argv.slice(2);
const bundle = words[0] === 'serve' ? './serve.js' : './cli.js';
const { run } = module_.createRequire(join(folder, 'app/'))(bundle);
run(words).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    // Thrown outside of the promise, an unexpected error ends the process with its stack.
    setImmediate(() => {
      throw error;
    });
  },
);

/** The folder with the files, complete and unchanged. Ends the process if no folder can be used. */
function findFolder() {
  const reasons = [];
  for (const parent of parents()) {
    try {
      return preparedFolder(parent);
    } catch (error) {
      reasons.push(`${parent}: ${error.message}`);
    }
  }
  const hint = 'Set XDG_CACHE_HOME to a folder that this user can write.';
  process.stderr.write(`waymark: cannot unpack its files. ${reasons.join('; ')}. ${hint}\n`);
  process.exit(1);
}

/** The possible folders, in this order: CacheDirectory= of systemd, the user's cache, /tmp. */
function parents() {
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  const cache = XDG_CACHE_HOME || ((HOME || isUser()) && join(HOME || homedir(), '.cache'));
  const own = `waymark-${process.getuid()}`;
  return [
    ...(CACHE_DIRECTORY ? [CACHE_DIRECTORY.split(':')[0]] : []),
    ...(cache ? [join(cache, 'waymark')] : []),
    join(tmpdir(), own),
  ];
}

function isUser() {
  try {
    return homedir() !== '';
  } catch {
    return false;
  }
}

function preparedFolder(parent) {
  fs.mkdirSync(parent, { recursive: true, mode: 0o700 });
  requirePrivate(parent);
  const target = join(parent, name);
  if (!fs.existsSync(target)) unpack(parent, target);
  requirePrivate(target);
  // A worker gets what the leading process has checked a moment ago.
  if (process.env.NODE_UNIQUE_ID === undefined && isMainThread) repair(target);
  return target;
}

/** Throws unless only this user, or root, can change a folder. */
function requirePrivate(path) {
  const found = fs.lstatSync(path);
  if (!found.isDirectory()) throw new Error('it is no folder');
  if (found.uid !== process.getuid() && found.uid !== 0) throw new Error('another user owns it');
  if ((found.mode & 0o022) !== 0) throw new Error('other users can write to it');
}

/**
 * Writes all files into a temporary folder, and renames it, so that no process finds a part of
 * them.
 */
function unpack(parent, target) {
  const draft = fs.mkdtempSync(join(parent, '.new-'));
  try {
    for (const path of Object.keys(manifest.files)) writeFile(draft, path);
    fs.writeFileSync(join(draft, checkedFile), '', { mode: 0o600 });
    try {
      fs.renameSync(draft, target);
    } catch (error) {
      // Another process was faster.
      if (!fs.existsSync(target)) throw error;
    }
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Writes the files again that are missing or changed. Reads only those that have changed since the
 * last check: to hash all of them takes 0.3 s of CPU time, which is more than most commands take.
 */
function repair(target) {
  const checkedMs = changedMs(join(target, checkedFile)) ?? -Infinity;
  let isChanged = false;
  for (const [path, expected] of Object.entries(manifest.files)) {
    const file = join(target, path);
    const ms = changedMs(file);
    // A file of the same millisecond may have been written after the check.
    if (ms !== undefined && ms < checkedMs) continue;
    isChanged = true;
    if (ms !== undefined && sha256(fs.readFileSync(file)) === expected) continue;
    fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}`;
    fs.writeFileSync(draft, content(path), { mode: 0o600 });
    fs.renameSync(draft, file);
  }
  if (isChanged) fs.writeFileSync(join(target, checkedFile), '', { mode: 0o600 });
}

/**
 * When the content or the inode of a file was last changed (st_ctime), in milliseconds since 1970;
 * undefined if it is missing. Programs cannot set this time, as they can that of the content.
 */
function changedMs(file) {
  return fs.lstatSync(file, { throwIfNoEntry: false })?.ctimeMs;
}

function writeFile(into, path) {
  const file = join(into, path);
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  fs.writeFileSync(file, content(path), { mode: 0o600 });
}

function content(path) {
  return new Uint8Array(sea.getRawAsset(`files/${path}`));
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}
