// A real server in a process of its own, on a port that stays the same when it is started again.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PYTHON = process.env.VIGILOG_PYTHON ?? "python3";

const PROGRAM = `
.decl edge(x: symbol, y: symbol)
.input edge
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
.decl stock(item: symbol, amount: number)
.input stock
.key stock(item)
.decl level(item: symbol, amount: number)
.key level(item)
.output level
level(i, n) :- stock(i, n).
.decl seen(n: number)
.input seen
.decl big(n: number)
.output big
big(n) :- seen(n), n > 1000.
`;

export async function serve(test, ...options) {
  const folder = mkdtempSync(join(tmpdir(), "vigilog-"));
  const program = join(folder, "program.dl");
  const data = join(folder, "data");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(program, PROGRAM);
  let process = null;

  const start = async () => {
    process = spawn(PYTHON, ["-m", "vigilog.cli.main", "serve", program, "--data", data, "--port", String(port), ...options], { stdio: ["ignore", "ignore", "inherit"] });
    while (!(await fetch(`${url}/health`).then((answer) => answer.ok, () => false))) {
      if (process.exitCode !== null) throw new Error(`the server ended with ${process.exitCode}`);
      await sleep(50);
    }
  };
  const end = (signal) =>
    new Promise((resolve) => {
      if (process.exitCode !== null || process.signalCode !== null) return resolve();
      process.once("exit", resolve);
      process.kill(signal);
    });
  const server = { url, data, folder, start, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };

  test.after(async () => {
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await start();
  return server;
}

export function vigilog(...words) {
  const { status, stdout, stderr } = spawnSync(PYTHON, ["-m", "vigilog.cli.main", ...words], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
