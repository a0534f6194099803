// A real server in a process of its own, on a port that stays the same when it is started again.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
.decl low(item: symbol, amount: number)
low(i, n) :- stock(i, n), n < 4.
.alert low(key=item, message="{item} has {amount}")
.decl wrong(item: symbol)
wrong(i) :- stock(i, n), n < 0.
.constraint wrong
`;

/** `init` and `serve` are options of these commands; `serve` may depend on the folder. */
export async function serve(test, { init = [], serve = () => [], text = PROGRAM } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "vigilog-"));
  const program = join(folder, "program.dl");
  const [data, log] = [join(folder, "data"), join(folder, "log")];
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const options = serve(folder);
  writeFileSync(program, text);
  if (init.length) vigilog(["init", program, "--data", data, ...init]);
  let process = null;

  const start = async () => {
    const words = ["-m", "vigilog.cli.main", "serve", program, "--data", data, "--port", String(port), "--no-spark", ...options];
    process = spawn(PYTHON, words, { stdio: ["ignore", "pipe", openSync(log, "a")] });
    const [line] = await Promise.race([once(process.stdout, "data"), once(process, "exit").then(() => [""])]);
    if (!String(line).includes("http://")) throw new Error(`it did not start: ${readFileSync(log)}`);
  };
  const end = (signal) =>
    new Promise((resolve) => {
      if (process.exitCode !== null || process.signalCode !== null) return resolve();
      process.once("exit", resolve);
      process.kill(signal);
    });
  const server = { url, data, folder, program, start, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };

  test.after(async () => {
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await start();
  return server;
}

export function vigilog(words, input) {
  const { status, stdout, stderr } = spawnSync(PYTHON, ["-m", "vigilog.cli.main", ...words], { encoding: "utf8", input });
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
