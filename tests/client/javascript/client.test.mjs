import assert from "node:assert/strict";
import { cpSync, renameSync, rmSync } from "node:fs";
import { describe, test as run } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, VigilogError } from "../../../vigilog/client/javascript/vigilog.js";
import { serve, vigilog } from "./server.mjs";

const SMALL = ["part=2", "large=20", "progress=600"].flatMap((limit) => ["--limit", limit]);
const AT_ONCE = { concurrency: 4 }; // most of a test is the start of its server
const sorted = (rows) => [...rows].map((row) => row.map(String)).sort();
const chain = (length) => Array.from({ length }, (_, n) => [`n${n}`, `n${n + 1}`]);

/** Rather than wait for ever, a test fails, and its server ends. */
const test = (name, body) => run(name, { timeout: 120_000 }, body);

/** A client that is closed at the end of the test, on a server that is, too. */
async function served(t, init) {
  const server = await serve(t, { init, serve: () => SMALL });
  const client = connect(server.url);
  t.after(() => client.close());
  return { server, client };
}

/** Equal to what the server says, row by row. */
async function assertRight(client, view) {
  const truth = await client.views();
  await view.waitFor(truth.tx);
  for (const name of view.names) assert.deepEqual(sorted(view.rows(name)), sorted((await client.view(name, { at: view.position.tx })).rows));
}

describe("calls", AT_ONCE, () => {
  test("tell, ask, why, what-if, views, view", async (t) => {
    const { client } = await served(t);
    assert.deepEqual(await client.tell({ insert: { edge: [["a", "b"], ["b", "c"]] } }), { tx: 1, views: { closure: { plus: 3, minus: 0 } } });
    assert.deepEqual((await client.ask('closure("a", y)')).rows.map((row) => row.at(-1)).sort(), ["b", "c"]);
    assert.ok(JSON.stringify((await client.why('closure("a", "c")')).proof).includes("edge"));
    const missing = await client.why('closure("c", "a")', { depth: 2 });
    assert.equal(missing.proof, null);
    assert.equal(missing.why_not.rules[0].ways[0].fails.literal, 'edge("c", "a")');
    const preview = await client.whatIf({ delete: { edge: [["b", "c"]] } });
    assert.deepEqual(preview.views.closure.minus, [["a", "c"], ["b", "c"]]);
    const { tx, views } = await client.views();
    assert.equal(tx, 1);
    assert.deepEqual(views.map(({ view }) => view).sort(), ["big", "closure", "level"]);
    assert.deepEqual((await client.view("closure", { bind: { x: "a" } })).rows, [["a", "b"], ["a", "c"]]);
    assert.deepEqual((await client.view("closure", { at: 0 })).rows, []);
  });

  test("rows by name, told and answered", async (t) => {
    const { client } = await served(t);
    await client.tell({ insert: { edge: [{ y: "b", x: "a" }, ["b", "c"]], stock: [{ item: "p", amount: 1 }] }, upsert: { stock: [{ amount: 9, item: "q" }] } });
    assert.deepEqual((await client.ask('closure("a", y)', { rows: "objects" })).rows, [{ x: "a", y: "b" }, { x: "a", y: "c" }]);
    assert.deepEqual((await client.view("closure", { bind: { x: "b" }, rows: "objects" })).rows, [{ x: "b", y: "c" }]);
    await assert.rejects(client.tell({ insert: { edge: [{ x: "a", yy: "b" }] } }), { code: "column", message: /did you mean y\?|has x, y/ });
  });

  test("a refusal says what, and with which status", async (t) => {
    const { client } = await served(t);
    await assert.rejects(client.tell({ insert: { edge: [["a"]] } }), (error) => error instanceof VigilogError && error.status === 400 && error.message.length > 0);
    await assert.rejects(client.view("nothing"), { name: "VigilogError", status: 404 });
    await assert.rejects(client.tell({ insert: { stock: [["p", 1], ["p", 2]] } }), { name: "VigilogError", status: 422 });
  });

  test("alerts are followed, constraints refuse", async (t) => {
    const { server, client } = await served(t);
    const { alerts } = await client.tell({ upsert: { stock: [["nut", 3]] } });
    assert.deepEqual(alerts, [{ alert: "low", state: "satisfied", row: ["nut", 3], message: "nut has 3" }]);
    await assert.rejects(client.tell({ upsert: { stock: [["nut", -1]] } }), { name: "VigilogError", status: 422, constraint: "wrong", rows: [["nut"]] });
    assert.deepEqual((await client.violations()).violations, []);
    await client.acknowledge("low", ["nut"]);
    const seen = [];
    for await (const event of client.subscribe({ alert: "low", from: null })) {
      if (event.kind === "snapshot") {
        assert.deepEqual(event.rows, [["nut", 3]]);
        await client.tell({ upsert: { stock: [["nut", 9], ["pin", 1]] } });
        await client.tell({ upsert: { stock: [["pin", 9]] } });
      }
      if (event.kind === "alert") seen.push([event.tx, event.state, ...event.row]);
      if (seen.length === 1) {
        await server.kill();
        await server.start();
      }
      if (seen.length === 3) break;
    }
    assert.deepEqual(seen, [[2, "ceased", "nut", 3], [2, "satisfied", "pin", 1], [3, "ceased", "pin", 1]]);
  });

  test("a key commits once", async (t) => {
    const { client } = await served(t);
    const first = await client.tell({ insert: { edge: [["a", "b"]] } }, { key: "once" });
    assert.deepEqual(await client.tell({ insert: { edge: [["a", "b"]] } }, { key: "once" }), first);
    assert.equal((await client.views()).tx, 1);
  });

  test("a transaction told while the server is down is committed when it is back", async (t) => {
    const { server, client } = await served(t);
    await server.kill();
    const told = client.tell({ insert: { edge: [["a", "b"]] } });
    await server.start();
    assert.equal((await told).tx, 1);
  });

  test("patience ends", async (t) => {
    const { server, client } = await served(t);
    await server.kill();
    await assert.rejects(client.tell({ insert: { edge: [["a", "b"]] } }, { patience: 0 }), TypeError);
    await assert.rejects(client.views({ signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  });
});

describe("a copy", AT_ONCE, () => {
  test("begins with the first answer, in parts, and follows", async (t) => {
    const { client } = await served(t);
    await client.tell({ insert: { edge: [["a", "b"], ["b", "c"], ["c", "d"]] } });
    const log = [];
    const view = await client.enroll("closure", { onPlus: (row, name, tx) => log.push(["+", ...row, name, tx]), onMinus: (row) => log.push(["-", ...row]), first: true });
    const unasked = [];
    const other = await client.enroll("closure", { onPlus: (row) => unasked.push(row), onChange: ({ tx }) => unasked.push(tx) });
    assert.equal(view.size, 6);
    assert.equal(log.length, 6);
    assert.deepEqual([other.size, unasked], [6, []]);
    other.close();
    assert.deepEqual(view.columns(), [{ name: "x", type: "symbol" }, { name: "y", type: "symbol" }]);

    const changes = [];
    const stop = view.onChange((change) => changes.push(change));
    const { tx } = await client.tell({ delete: { edge: [["c", "d"]] }, insert: { edge: [["c", "e"]] } });
    assert.equal(await view.waitFor(tx), view);
    assert.deepEqual(changes.map(({ tx, plus, minus }) => [tx, sorted(plus), sorted(minus)]), [
      [2, [["a", "e"], ["b", "e"], ["c", "e"]], [["a", "d"], ["b", "d"], ["c", "d"]]],
    ]);
    assert.deepEqual(log.slice(6).map(([sign]) => sign).join(""), "---+++");
    assert.deepEqual(sorted(view), sorted(view.snapshot().views.closure));
    assert.equal(view.snapshot().tx, 2);
    stop();
    await view.waitFor((await client.tell({ insert: { edge: [["x", "y"]] } })).tx);
    assert.equal(changes.length, 1);
    await assertRight(client, view);

    view.close();
    assert.equal(await view.ended, undefined);
    await assert.rejects(view.waitFor(99), { code: "closed" });
    assert.equal(client.connected, false);
  });

  test("of several views changes at once; a slice and a query have only their rows", async (t) => {
    const { client } = await served(t);
    await client.tell({ insert: { edge: [["a", "b"]], stock: [["p", 1]] } });
    const both = await client.enroll({ views: ["closure", "level"] });
    const slice = await client.enroll({ view: "closure", bind: { x: "a" } });
    const goal = await client.enroll({ query: 'closure(x, "c")' });
    const told = [];
    both.onChange((change) => told.push(change));
    const { tx } = await client.tell({ insert: { edge: [["b", "c"]] }, upsert: { stock: [["p", 2]] } });
    await Promise.all([both, slice, goal].map((view) => view.waitFor(tx)));
    assert.equal(told.length, 1);
    assert.deepEqual(told[0].views.level, { plus: [["p", 2]], minus: [["p", 1]], modified: [{ old: ["p", 1], new: ["p", 2] }] });
    assert.deepEqual(sorted(told[0].views.closure.plus), [["a", "c"], ["b", "c"]]);
    assert.deepEqual(sorted(slice), [["a", "b"], ["a", "c"]]);
    assert.deepEqual(sorted(goal).map(([x]) => x), ["a", "b"]);
    assert.throws(() => both.size, TypeError);
    await assertRight(client, both);
  });

  test("a change too large to be sent is fetched", async (t) => {
    const { client } = await served(t);
    const view = await client.enroll("closure");
    const sizes = [];
    view.onChange(({ plus, minus }) => sizes.push([plus.length, minus.length]));
    await client.tell({ insert: { edge: chain(30) } });
    await client.tell({ insert: { edge: [["x", "y"]] } });
    const { tx } = await client.tell({ delete: { edge: chain(30) } });
    await view.waitFor(tx);
    assert.deepEqual(sizes, [[465, 0], [1, 0], [0, 465]]);
    assert.deepEqual(sorted(view), [["x", "y"]]);
  });

  test("integers keep their rows apart, and are exact if wanted", async (t) => {
    const { server, client } = await served(t);
    const exact = connect(server.url, { bigint: true });
    const plain = connect(server.url, { integers: "text" });
    t.after(() => (exact.close(), plain.close()));
    const [one, two] = [9007199254740992n, 9007199254740993n];
    await exact.tell({ insert: { seen: [[one], [two]] } });
    const views = await Promise.all([client, exact, plain].map((each) => each.enroll("big")));
    assert.deepEqual(views.map((view) => view.rows().map(([n]) => typeof n)), [["number", "number"], ["bigint", "bigint"], ["string", "string"]]);
    const { tx } = await exact.tell({ delete: { seen: [[two]] } });
    await Promise.all(views.map((view) => view.waitFor(tx)));
    assert.deepEqual(views.map((view) => view.rows()), [[[Number(one)]], [[one]], [[String(one)]]]);
    assert.deepEqual((await exact.view("big", { bind: { n: one } })).rows, [[one]]);
    assert.deepEqual((await exact.ask("big(n)")).rows, [[one]]);
    assert.deepEqual((await exact.whatIf({ insert: { seen: [[two]] } })).views.big.plus, [[two]]);
    const [all] = [views[2].rows()]; // what a client was given, it can tell
    assert.deepEqual((await plain.whatIf({ delete: { seen: all } })).views.big.minus, all);
    await plain.tell({ delete: { seen: all } });
    await views[2].waitFor((await plain.tell({ insert: { seen: [...all, [String(two)]] } })).tx);
    assert.deepEqual(views[2].rows(), [[String(one)], [String(two)]]);
    assert.deepEqual((await plain.enroll({ view: "big", bind: { n: String(two) } })).rows(), [[String(two)]]);
    await assert.rejects(client.tell({ insert: { seen: [["7"]] } }), { code: "value" });
  });

  test("a callback that fails ends it, and nothing else", async (t) => {
    const { client } = await served(t);
    t.mock.method(console, "error", () => {});
    const [bad, good] = await Promise.all([client.enroll("closure"), client.enroll("closure")]);
    bad.onPlus(() => {
      throw new RangeError("no");
    });
    const { tx } = await client.tell({ insert: { edge: [["a", "b"]] } });
    assert.ok((await bad.ended) instanceof RangeError);
    await assert.rejects(bad.waitFor(tx + 1), RangeError);
    await good.waitFor(tx);
    assert.equal(good.size, 1);
  });

  test("what cannot be followed is refused, and nothing else", async (t) => {
    const { client } = await served(t);
    const good = await client.enroll("closure");
    await assert.rejects(client.enroll("nothing"), { name: "VigilogError", code: "unknown-relation" });
    const [bad, other] = await Promise.allSettled([client.enroll({ view: "closure", qos: { every: -1 } }), client.enroll("level")]);
    assert.match(bad.reason.message, /every/);
    assert.equal(other.status, "fulfilled");
    await assert.rejects(client.enroll({ query: "closure(" }), /not closed/);
    await assert.rejects(client.enroll({ view: "closure", qos: { precision: "counts" } }), TypeError);
    await assertRight(client, good);
  });
});

describe("when the server goes away", AT_ONCE, () => {
  test("kill -9: every change comes once, in order, and the copy is right", async (t) => {
    const { server, client } = await served(t);
    const states = [];
    client.onConnection((connected) => states.push(connected));
    const view = await client.enroll("closure");
    const wide = await client.enroll({ views: ["closure", "big"] });
    const seen = [];
    view.onChange(({ tx }) => seen.push(tx));
    const writer = connect(server.url);
    const write = (n) => writer.tell(n % 3 === 2 ? { delete: { edge: [[`n${n - 1}`, "b"]] } } : { insert: { edge: [[`n${n}`, "b"]], seen: [[2000 + n]] } });
    for (const from of [0, 20, 40]) {
      const writing = (async () => {
        for (let n = from; n < from + 20; n++) await write(n);
      })();
      await view.waitFor(from + 5);
      await server.kill();
      await server.start();
      await writing;
    }
    await view.waitFor(60);
    assert.deepEqual(seen, Array.from({ length: 60 }, (_, n) => n + 1));
    await assertRight(client, view);
    await assertRight(client, wide);
    assert.deepEqual(states, states.map((_, n) => n % 2 === 0));
    assert.ok(states.length >= 5);
  });

  test("a graceful stop says where to go on", async (t) => {
    const { server, client } = await served(t);
    const events = client.subscribe("closure")[Symbol.asyncIterator]();
    const until = async (kind) => {
      for (;;) {
        const { value } = await events.next();
        if (value.kind === kind) return value;
        assert.notEqual(value.kind, "gap");
      }
    };
    assert.equal((await until("snapshot")).last, true);
    await client.tell({ insert: { edge: [["a", "b"]] } });
    await until("change");
    await server.stop();
    assert.equal((await until("closing")).tx, 1);
    await server.start();
    await until("subscribed");
    await client.tell({ insert: { edge: [["b", "c"]] } });
    assert.deepEqual(sorted((await until("change")).plus), [["a", "c"], ["b", "c"]]);
  });

  test("a gap: the copy is taken anew, and the difference told", async (t) => {
    const { server, client } = await served(t, ["--retain", "transactions=5"]);
    await client.tell({ insert: { edge: [["a", "b"], ["c", "d"]] } });
    const kinds = [];
    const events = client.subscribe("closure");
    const reading = (async () => {
      for await (const { kind, tx } of events) {
        if (kind !== "progress") kinds.push(kind);
        if (kind === "snapshot" && tx > 1) break;
      }
    })();
    const changes = [];
    const view = await client.enroll("closure");
    view.onChange((change) => changes.push(change));
    await server.stop();
    const line = (n) => JSON.stringify({ insert: { seen: [[n]] } });
    vigilog(["tell", server.data], [...Array.from({ length: 20 }, (_, n) => line(n)), '{"delete": {"edge": [["a", "b"]]}, "insert": {"edge": [["d", "e"]]}}'].join("\n"));
    await server.start();
    await reading;
    await assertRight(client, view);
    assert.deepEqual(kinds, ["subscribed", "snapshot", "closing", "gap", "subscribed", "snapshot"]);
    assert.deepEqual(changes.map(({ plus, minus }) => [sorted(plus), sorted(minus)]), [[[["c", "e"], ["d", "e"]], [["a", "b"]]]]);
  });

  test("another history: the copy is taken anew, and the difference told", async (t) => {
    const { server, client } = await served(t);
    await client.tell({ insert: { edge: [["a", "b"]] } });
    const view = await client.enroll("closure");
    const events = [];
    view.onChange(({ plus, minus }) => events.push([plus, minus]));
    await server.stop();
    const [backup, moved] = [`${server.folder}/backup`, `${server.folder}/old`];
    vigilog(["backup", server.data, backup]);
    await server.start();
    await view.waitFor((await client.tell({ insert: { edge: [["x", "y"]] } })).tx);
    await server.stop();
    renameSync(server.data, moved);
    vigilog(["restore", backup, server.data]);
    const { db } = view.position;
    await server.start();
    await view.waitFor(0);
    while (view.position.db === db) await sleep(20);
    assert.deepEqual(view.rows(), [["a", "b"]]);
    assert.deepEqual(events, [[[["x", "y"]], []], [[], [["x", "y"]]]]);
    await assert.rejects(async () => {
      for await (const event of client.subscribe({ view: "closure", from: 1, db })) assert.fail(event.kind);
    }, { code: "history" });
  });

  test("a copy of the folder that went another way: its id is the same, its digests are not", async (t) => {
    const { server, client } = await served(t);
    await client.tell({ insert: { edge: [["a", "b"]] } });
    const view = await client.enroll("closure");
    const early = view.position;
    await server.stop();
    cpSync(server.data, `${server.folder}/copy`, { recursive: true });
    await server.start();
    await view.waitFor((await client.tell({ insert: { edge: [["b", "c"]] } })).tx);
    const late = view.position;
    await server.stop();
    rmSync(server.data, { recursive: true });
    renameSync(`${server.folder}/copy`, server.data);
    await server.start();
    const { tx } = await client.tell({ insert: { edge: [["x", "y"]] } });
    assert.equal(tx, late.tx);
    while (view.position.digest === late.digest) await sleep(20);
    await view.waitFor(tx);
    await assertRight(client, view);
    assert.equal(view.position.db, late.db);
    for await (const event of client.subscribe({ view: "closure", from: early })) {
      if (event.kind !== "change") continue;
      assert.deepEqual([event.tx, event.plus], [tx, [["x", "y"]]]);
      break;
    }
    const { digest } = late;
    for (const from of [late, { tx, digest }]) {
      await assert.rejects(async () => {
        for await (const event of client.subscribe({ view: "closure", from })) assert.fail(event.kind);
      }, { code: "history" });
    }
  });

  test("rows with names: events, a copy and its callbacks", async (t) => {
    const { client } = await served(t);
    await client.tell({ insert: { stock: [["bolt", 7], ["nut", 3]] } });
    const view = await client.enroll("level", { rows: "objects" });
    const told = [];
    view.onChange(({ plus, minus, modified }) => told.push({ plus, minus, modified }));
    view.onPlus(({ item }) => told.push(item));
    const { tx } = await client.tell({ upsert: { stock: [["bolt", 8]] } });
    await view.waitFor(tx);
    assert.deepEqual(view.rows(), [{ item: "nut", amount: 3 }, { item: "bolt", amount: 8 }]);
    const [old, now] = [{ item: "bolt", amount: 7 }, { item: "bolt", amount: 8 }];
    assert.deepEqual(told, ["bolt", { plus: [now], minus: [old], modified: [{ old, new: now }] }]);
    for await (const event of client.subscribe("level", { rows: "objects" })) {
      if (event.kind !== "snapshot") continue;
      assert.deepEqual([...event.rows].sort((a, b) => a.amount - b.amount), view.rows());
      break;
    }
    for await (const event of client.subscribe({ alert: "low" }, { rows: "objects" })) {
      if (event.kind === "snapshot") await client.tell({ upsert: { stock: [["bolt", 1]] } });
      if (event.kind !== "alert") continue;
      assert.deepEqual(event.row, { item: "bolt", amount: 1 });
      break;
    }
  });

  test("a server that has fallen back: the copy is taken anew", async (t) => {
    const { server, client } = await served(t);
    await client.tell({ insert: { edge: [["a", "b"]] } });
    await server.stop();
    cpSync(server.data, `${server.folder}/copy`, { recursive: true });
    await server.start();
    await client.tell({ insert: { edge: [["b", "c"]] } });
    const view = await client.enroll("closure");
    await server.stop();
    rmSync(server.data, { recursive: true });
    renameSync(`${server.folder}/copy`, server.data);
    await server.start();
    while (view.size !== 1) await sleep(20);
    assert.deepEqual(view.rows(), [["a", "b"]]);
  });
});

test("with tokens: calls and subscriptions say theirs, and without one nothing is told", async (t) => {
  let token;
  const server = await serve(t, {
    serve: (folder) => {
      token = vigilog(["token", `${folder}/tokens.json`, "reader", "--read", "closure"]).trim().split(/\s/).at(-1);
      return ["--tokens", `${folder}/tokens.json`];
    },
  });
  const [reader, stranger] = [connect(server.url, { token }), connect(server.url)];
  t.after(() => (reader.close(), stranger.close()));
  assert.deepEqual((await reader.enroll("closure")).rows(), []);
  await assert.rejects(reader.enroll("level"), { code: "forbidden" });
  await assert.rejects(reader.tell({ insert: { edge: [["a", "b"]] } }), { status: 403 });
  await assert.rejects(stranger.enroll("closure"), VigilogError);
  await assert.rejects(stranger.views(), { status: 401 });
});

describe("a subscription", AT_ONCE, () => {
  test("by name goes on after what was dealt with, also after kill -9", async (t) => {
    const { server, client } = await served(t);
    const spec = { view: "closure", name: "audit" };
    await client.tell({ insert: { edge: [["a", "b"]] } });
    const first = [];
    for await (const event of client.subscribe(spec)) {
      first.push(event.kind);
      if (event.kind === "snapshot") await client.tell({ insert: { edge: [["c", "d"]] } });
      if (event.kind === "change") await client.tell({ insert: { edge: [["e", "f"]] } });
      if (event.kind === "change" && event.tx === 3) break; // not dealt with
    }
    assert.deepEqual(first.filter((kind) => kind !== "progress"), ["subscribed", "snapshot", "change", "change"]);
    const noted = async () => (await client.call("GET", "v1/subscriptions")).subscriptions[0].tx;
    while ((await noted()) !== 2) await sleep(50); // the server writes it down every now and then
    await server.kill();
    await server.start();
    const again = client.subscribe(spec);
    for await (const event of again) {
      if (event.kind === "change") {
        assert.deepEqual([event.tx, event.plus], [3, [["e", "f"]]]);
        break;
      }
      assert.notEqual(event.kind, "snapshot");
    }
    await again.cancel();
    assert.deepEqual((await client.call("GET", "v1/subscriptions")).subscriptions, []);
  });

  test("of a slow reader holds little, and misses nothing", async (t) => {
    const { client } = await served(t);
    const events = client.subscribe("closure");
    const quick = await client.enroll("closure");
    const seen = [];
    let last;
    for await (const event of events) {
      if (event.kind === "snapshot") for (let n = 0; n < 1500; n += 50) last = (await Promise.all(Array.from({ length: 50 }, (_, k) => client.tell({ insert: { edge: [[`x${n + k}`, "y"]] } })))).at(-1).tx;
      if (event.kind === "snapshot") await quick.waitFor(1500);
      if (event.kind === "snapshot") assert.ok(events.paused);
      if (event.kind === "change") seen.push(event.tx);
      if (event.tx >= 1500) break;
    }
    assert.deepEqual(seen, Array.from({ length: 1500 }, (_, n) => n + 1));
    assert.equal(last, 1500);
  });

  test("with counts, signals and coalesced changes", async (t) => {
    const { client } = await served(t);
    const next = async (spec) => {
      const events = client.subscribe(spec)[Symbol.asyncIterator]();
      for (;;) if ((await events.next()).value.last) break;
      return async () => {
        for (;;) {
          const { value } = await events.next();
          if (value.kind === "change") return value;
        }
      };
    };
    const counts = await next({ view: "closure", qos: { precision: "counts" } });
    const signal = await next({ view: "closure", qos: { precision: "signal" } });
    const coalesced = await next({ view: "closure", qos: { changes: 3, within: 60, coalesce: true } });
    await client.tell({ insert: { edge: [["a", "b"]] } });
    await client.tell({ insert: { edge: [["c", "d"]] } });
    await client.tell({ delete: { edge: [["a", "b"]] } });
    const { digest, ...counted } = await counts();
    assert.match(digest, /^[0-9a-f]{16}$/);
    assert.deepEqual(counted, { kind: "change", tx: 1, plus: 1, minus: 0 });
    assert.deepEqual(await signal(), { kind: "change", tx: 1, digest });
    const { tx, since, plus, minus } = await coalesced();
    assert.deepEqual([tx, since, plus, minus], [3, 0, [["c", "d"]], []]);
  });
});

describe("constrained views", AT_ONCE, () => {
  test("a copy counts the facts that cover a row", async (t) => {
    const { client } = await served(t);
    const text = ".decl span(x: number) constrained\n.output span\nspan(x) :- x >= 5, x <= 20.\nspan(x) :- x >= 10, x <= 30.\n";
    await client.call("POST", "v1/definitions", { body: { text } });
    const view = await client.enroll("span");
    assert.deepEqual(view.rows(), [{ args: ["x"], where: "x >= 5, x <= 30" }]);
    const has = () => [4, 5, 12, 13, 30, 31].map((x) => view.has([x]));
    assert.deepEqual(has(), [false, true, true, true, true, false]);
    const changes = [];
    view.onChange(({ plus, minus }) => changes.push([plus, minus]));
    const { tx } = await client.tell({ delete: { span: [{ args: ["x"], where: "x >= 12, x <= 13" }] }, insert: { span: [[31]] } });
    await view.waitFor(tx);
    assert.deepEqual(has(), [false, true, false, false, true, true]);
    assert.deepEqual(changes, [[[{ args: ["x"], where: "x = 31" }], [{ args: ["x"], where: "x >= 12, x <= 13" }]]]);
    await view.waitFor((await client.tell({ insert: { span: [[13]] } })).tx);
    assert.deepEqual(has(), [false, true, false, true, true, true]);
    assert.deepEqual((await client.ask("span(13)")).rows, [[13]]);
  });
});
