/**
 * Vigilog's protocol, version 1 (docs/protocol.md), for browsers and Node 20 or newer; no dependencies.
 *
 *     const client = connect("http://127.0.0.1:8080");
 *     const view = await client.enroll("closure");     // a copy that keeps itself equal to the server's view
 *     view.onChange(({ tx, plus, minus }) => …);
 *     const { tx } = await client.tell({ insert: { edge: [["a", "b"]] } });
 *     await view.waitFor(tx);
 *     for (const [x, y] of view) …
 *
 * One WebSocket carries all subscriptions of a client. When it is lost, each is taken up again from its position, so that every change comes once and in order.
 * Subscriptions ask for integers as text, so that a row's JSON text is its exact key, whatever the reader makes of its numbers.
 */

const QUEUE = 1000; // so many messages wait for a slow reader; changes after them are left at the server, and asked for later
const SILENCE = 15_000; // after so long without a message a server is pinged, and after twice as long taken for lost
const RETRIED = new Set([429, 502, 503, 504]);
const PLACED = new Set(["snapshot", "change", "alert", "progress", "closing"]); // messages that move the position

export class VigilogError extends Error {
  constructor({ code = "unknown", message = code, ...rest }, status) {
    super(message);
    Object.assign(this, rest, { name: "VigilogError", code, status });
  }
}

/** Nothing is sent before it is needed, so a server may come later. */
export function connect(url, options = {}) {
  return new Client(url, options);
}

export class Client {
  #base;
  #options;
  #connection;

  constructor(url, options) {
    this.#base = new URL(url);
    if (!this.#base.pathname.endsWith("/")) this.#base.pathname += "/";
    this.#options = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket, patience: 30, ...options };
    this.#options.integers = options.bigint ? "bigint" : (options.integers ?? "number");
    const address = new URL("v1/subscribe", this.#base);
    address.protocol = address.protocol.replace("http", "ws");
    this.#connection = new Connection(address, this.#options.WebSocket);
  }

  get connected() { return this.#connection.connected; }

  /** Calls back with true and false as the WebSocket comes and goes. What this gives ends it, as with all of the kind. */
  onConnection(callback) { return listen(this.#connection.listeners, callback); }

  /** Commits a transaction. Its key makes it safe to try again, for as long as the client has patience. */
  tell(transaction, { key = randomKey(), ...options } = {}) {
    return this.#post("v1/transactions", transaction, { ...options, headers: { "Idempotency-Key": key }, query: this.#exact() });
  }

  /** Answers are arrays, or, with `rows: "objects"`, objects with the columns' names. */
  async ask(goal, { at, rows, ...options } = {}) {
    return this.#typed(await this.#post("v1/ask", { goal, at }, { ...options, query: this.#exact() }), rows);
  }

  /** A proof of an atom; of one that does not hold, why not, down to `depth` levels of rules. */
  why(goal, { depth, ...options } = {}) { return this.call("GET", "v1/why", { ...options, query: { goal, depth } }); }

  /** What a transaction would change, row by row, and what each subscription would be sent. */
  async whatIf(transaction, options) {
    const answer = await this.#post("v1/transactions", transaction, { ...options, query: { dry_run: true, ...this.#exact() } });
    if (this.#options.integers !== "bigint") return answer;
    const columns = Object.fromEntries((await this.views(options)).views.map((each) => [each.view, each.columns]));
    const read = (views) => mapped(views, (change, name) => readChange(change, reader(columns[name], "bigint")));
    return { ...answer, views: read(answer.views), subscriptions: answer.subscriptions?.map((each) => ({ ...each, views: read(each.views) })) };
  }

  /** The present violations of all constraints, with why. */
  violations(options) { return this.call("GET", "v1/violations", options); }

  /** Somebody has seen what an alert says of a row: the server's sinks are silent about its key until it ceases. */
  acknowledge(alert, row, options) { return this.#post(`v1/alerts/${encodeURIComponent(alert)}/ack`, { row }, options); }

  views(options) { return this.call("GET", "v1/views", options); }

  /** The rows of a view; with `nested`, the objects of a view frame. */
  async view(name, { bind = {}, at, rows, nested, ...options } = {}) {
    const bound = Object.fromEntries(Object.entries(bind).map(([column, value]) => [`bind.${column}`, value]));
    if (nested) return this.call("GET", `v1/views/${encodeURIComponent(name)}`, { ...options, query: { ...bound, at, nested, ...this.#exact() } });
    return this.#typed(await this.call("GET", `v1/views/${encodeURIComponent(name)}`, { ...options, query: { ...bound, at, ...this.#exact() } }), rows);
  }

  /** Events as they come, for `for await`; going on to the next says that the last one is dealt with. */
  subscribe(spec, { rows } = {}) { return this.#subscribe(spec, this.#options.integers, rows); }

  /** Resolves when the first answer is there. With `first`, callbacks given here are told of its rows, too. With `rows: "objects"` rows have names. */
  async enroll(spec, callbacks = {}) {
    if (spec.from != null) throw new TypeError("a copy begins with a first answer: subscribe, to begin at a position");
    if ((spec.qos?.precision ?? "rows") !== "rows") throw new TypeError("a copy needs rows: subscribe, for counts and signals");
    const view = new View(this.#subscribe(spec, "text", "arrays", { from: null }), this.#options.integers, !spec.views, callbacks);
    return view.waitFor(0, callbacks).catch((reason) => {
      view.close();
      throw reason;
    });
  }

  /** The objects of a view frame, patched in place: a ViewAdmin of objects.js, which must be beside this module. Generated classes begin with `EmpAdmin.open(client)`. */
  async enrollFrame(frame, options = {}) {
    const { ViewAdmin } = await import("./objects.js");
    return ViewAdmin.open(this, { ...options, frame });
  }

  /** For objects.js: a subscription from a first answer on whose integers are text, and what they are to become. */
  exact(spec) { return { subscription: this.#subscribe(spec, "text", "arrays", { from: null }), integers: this.#options.integers }; }

  /** Ends everything here. Named subscriptions stay with the server, to be gone on with. */
  close() { this.#connection.close(); }

  /** One call of the protocol. While the server cannot be reached, is busy or stops, it is tried again for so many seconds of patience. */
  async call(method, path, { query = {}, body, headers, signal, patience = method === "GET" ? this.#options.patience : 0 } = {}) {
    const { token, tool, fetch } = this.#options;
    const url = new URL(path.replace(/^\//, ""), this.#base);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    const request = { method, signal, headers: new Headers(headers), body: body && text(body) };
    if (body) request.headers.set("Content-Type", "application/json");
    if (token) request.headers.set("Authorization", `Bearer ${token}`);
    if (tool) request.headers.set("Vigilog-Tool", encodeURIComponent(tool));
    const until = Date.now() + patience * 1000;
    for (let attempt = 0; ; attempt++) {
      let wait = backoff(attempt);
      let failure;
      try {
        const response = await fetch(url, request);
        if (response.ok) return await response.json();
        const said = await response.json().catch(() => ({}));
        failure = new VigilogError(said.error ?? { code: "http", message: `${response.status} ${response.statusText}` }, response.status);
        if (!RETRIED.has(response.status)) throw failure;
        wait = Math.max(wait, 1000 * Number(response.headers.get("Retry-After")) || 0);
      } catch (reason) {
        if (reason === failure || reason instanceof SyntaxError || signal?.aborted) throw reason;
        failure = reason;
      }
      if (Date.now() + wait > until) throw failure;
      await sleep(wait, signal);
    }
  }

  #post(path, body, options) { return this.call("POST", path, { patience: this.#options.patience, ...options, body }); }

  #subscribe(spec, integers, form, start) {
    const wish = { ...(typeof spec === "string" ? { view: spec } : spec), ...start, token: this.#options.token, tool: this.#options.tool, integers: "text" };
    return new Subscription(wish, { integers, form }, this.#connection, (...call) => this.call(...call));
  }

  #exact() { return this.#options.integers === "number" ? {} : { integers: "text" }; }

  #typed(answer, form = "arrays") {
    return { ...answer, rows: answer.rows.map(reader(answer.columns, this.#options.integers, form)) };
  }
}

/** The one WebSocket: opened for the first subscription, opened anew while there are any, closed after the last. */
class Connection {
  listeners = new Set();
  #subscriptions = new Set();
  #ids = new Map();
  #lastId = 0;
  #socket = null;
  #timer = null;
  #watch = null;
  #attempt = 0;
  #said = false;

  constructor(address, WebSocket) { Object.assign(this, { address, WebSocket }); }

  get connected() { return this.#socket?.readyState === 1; }

  add(subscription) {
    if (!this.WebSocket) throw new TypeError("there is no WebSocket here: start Node 20 with --experimental-websocket, or pass one to connect");
    if (!this.#socket && !this.#timer) this.#open();
    this.#subscriptions.add(subscription);
    this.request(subscription);
  }

  /** Under a new id each time, so that what still comes for the old one is not mistaken for an answer. */
  request(subscription) {
    this.#ids.delete(subscription.id);
    if (!this.connected) return; // all are requested when it opens
    subscription.id = ++this.#lastId;
    this.#ids.set(subscription.id, subscription);
    this.send(subscription, { subscribe: subscription.request() });
  }

  send({ id }, message) { if (this.connected && this.#ids.has(id)) this.#socket.send(text({ id, ...message })); }

  /** What comes for it from now on is ignored. Cancelling forgets a name. */
  pause(subscription, cancel = !subscription.named) {
    if (cancel) this.send(subscription, { cancel: {} });
    this.#ids.delete(subscription.id);
  }

  remove(subscription) {
    if (!this.#subscriptions.delete(subscription)) return;
    // No message ends a named subscription without forgetting its name: the end of the connection does, and the others go on with the next.
    const leave = subscription.named && this.#ids.has(subscription.id);
    this.pause(subscription);
    if (leave || !this.#subscriptions.size) this.#drop();
  }

  close() { for (const subscription of [...this.#subscriptions]) subscription.close(); }

  #open() {
    this.#timer = null;
    const socket = (this.#socket = new this.WebSocket(this.address));
    const lost = () => socket === this.#socket && this.#drop();
    let heard = Date.now();
    this.#watch = setInterval(() => {
      if (Date.now() - heard > 2 * SILENCE) lost();
      else if (Date.now() - heard > SILENCE && this.connected) socket.send('{"ping": 1}');
    }, SILENCE / 3);
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      for (const subscription of this.#subscriptions) if (!subscription.paused) this.request(subscription);
      this.#say(true);
    };
    socket.onmessage = ({ data }) => {
      heard = Date.now();
      if (socket === this.#socket) this.#receive(JSON.parse(data));
    };
    socket.onerror = socket.onclose = lost;
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    this.#ids.clear();
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    this.#timer = this.#subscriptions.size ? setTimeout(() => this.#open(), backoff(this.#attempt++)) : null;
    if (socket?.readyState < 2) socket.close(1000);
    this.#say(false);
  }

  #say(connected) {
    if (connected !== this.#said) for (const callback of this.listeners) callback(connected);
    this.#said = connected;
  }

  #receive({ id, ...message }) {
    if (message.subscribed) this.#attempt = 0;
    for (const [kind, body] of Object.entries(message)) this.#ids.get(id)?.receive(kind, body);
  }
}

export class Subscription {
  position = null; // of the event that was delivered last
  paused = false;
  #wish;
  #manner; // how rows are told: `integers`, and their `form`
  #connection;
  #call;
  #start; // where the next request begins: `from` and `db`, at first as the caller gave them
  #resumes = false;
  #partial = true; // nothing is known yet, or a first answer is on its way: there is no position before its end
  #reported = null; // the last report of an alert, and how many were left of its transaction
  #queue = [];
  #wake = () => {};
  #ended = null;
  #aborted = new AbortController();
  #dealtWith = null; // the position that is to be acknowledged
  #acknowledgedAt = 0;
  #db; // of what comes in
  #history; // of what is delivered
  #columns = {};
  #events = this.#deliver();

  constructor({ from, db, ...wish }, manner, connection, call) {
    const start = from?.tx === undefined ? { from, db } : { from: marked(from), db: db ?? from.db };
    [this.#wish, this.#start, this.#manner, this.#connection, this.#call] = [wish, start, manner, connection, call];
    connection.add(this);
  }

  get named() { return this.#wish.name !== undefined; }

  [Symbol.asyncIterator]() { return this.#events; }

  /** Everything up to here is dealt with. A loop over a named subscription says so by itself. */
  ack(tx = this.position?.tx) { this.#connection.send(this, { ack: tx }); }

  /** Somebody waits for a transaction: the server says as soon as it has come so far, whether it changed anything or not. */
  expect(tx) { this.#connection.send(this, { progress: tx }); }

  /** Ends it, and resolves when the server has forgotten its name, if it has one. */
  async cancel() {
    this.#connection.pause(this, true);
    this.close();
    if (!this.named) return;
    const forgotten = this.#call("DELETE", `v1/subscriptions/${encodeURIComponent(this.#wish.name)}`, { patience: 30 });
    await forgotten.catch((reason) => { if (reason.status !== 404) throw reason; });
  }

  close() {
    this.#acknowledge();
    this.#queue.length = 0;
    this.#end({});
  }

  /** What the connection asks for, whenever it opens. */
  request() {
    this.#partial = true;
    return { ...this.#wish, ...this.#start };
  }

  receive(kind, body) {
    if (kind === "error") return this.#refused(body);
    if (kind === "cancelled") return this.#end({});
    if (kind === "change" && this.#queue.length >= QUEUE) {
      this.paused = true;
      return this.#connection.pause(this);
    }
    if (kind === "subscribed") {
      this.#db = body.db;
      this.#partial = this.#start.from == null && !(this.named && this.#start.from === undefined); // a known name may go on
    }
    if (kind === "snapshot") this.#partial = !body.last;
    if (kind === "alert") {
      const left = body.left ?? 0; // until the last report of a transaction is here, the position is that before it
      if (this.#reported?.tx === body.tx && left >= this.#reported.left) return;
      [this.#reported, this.#partial, this.#resumes] = [{ tx: body.tx, left }, false, true];
      this.#start = { from: marked(body), db: this.#db };
      return this.#push({ kind, ...body });
    }
    if (PLACED.has(kind) && !this.#partial) {
      this.#start = { from: marked(body), db: this.#db };
      this.#resumes = true;
    }
    if (kind === "progress" && this.#queue.at(-1)?.kind === kind) this.#queue.pop();
    if (PLACED.has(kind) || kind === "subscribed" || kind === "stale") this.#push({ kind, ...body });
  }

  #push(event) {
    this.#queue.push(event);
    this.#wake();
  }

  #refused(error) {
    const anew = (error.code === "history" || error.code === "future") && this.#resumes; // the server has another past
    if (anew || error.code === "gap") this.#forget(error);
    if (anew) return this.#connection.request(this);
    if (error.code === "gap") return; // a first answer follows by itself
    this.#connection.pause(this, false); // the server has ended it
    this.#end({ error: new VigilogError(error) });
  }

  #forget({ code, message }) {
    this.#start = { from: null };
    this.#partial = true;
    this.#push({ kind: "gap", code, message });
  }

  #end(how) {
    this.#ended ??= how;
    this.#aborted.abort();
    this.#connection.remove(this);
    this.#wake();
  }

  async *#deliver() {
    try {
      for (;;) {
        while (this.#queue.length) {
          const event = await this.#read(this.#queue.shift());
          if (!event) continue;
          if (event.kind === "gap") this.position = null;
          else if (PLACED.has(event.kind) && event.last !== false) this.position = { db: this.#history, tx: settled(event), ...(event.digest && { digest: event.digest }) };
          yield event;
          this.#dealtWith = this.position;
          if (!this.#queue.length || Date.now() - this.#acknowledgedAt > 1000) this.#acknowledge();
        }
        if (this.#ended?.error) throw this.#ended.error;
        if (this.#ended) return;
        if (this.paused) {
          this.paused = false;
          this.#connection.request(this);
        }
        await new Promise((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.close();
    }
  }

  /** Unless the server, after a new beginning, does not know yet how far this is. */
  #acknowledge() {
    if (!this.named || this.#partial || !this.#dealtWith || this.#dealtWith.db !== this.#db) return;
    this.ack(this.#dealtWith.tx);
    this.#acknowledgedAt = Date.now();
    this.#dealtWith = null;
  }

  /** A message with its values read, and its rows fetched if they were only named; null if they are no longer to be had. */
  async #read(event) {
    if (event.kind === "subscribed") [this.#history, this.#columns] = [event.db, mapped(event.views, ({ columns }) => columns)];
    if (event.kind === "alert") {
      const read = this.#reader(event.alert);
      return { ...event, row: read(event.row), ...(event.old && { old: read(event.old) }) };
    }
    if (event.kind !== "snapshot" && event.kind !== "change") return event;
    try {
      if (!event.views) return await this.#readPart(event, this.#wish.view ?? this.#wish.alert ?? "query");
      const views = {};
      for (const [name, part] of Object.entries(event.views)) views[name] = await this.#readPart(part, name);
      return { ...event, views };
    } catch (reason) {
      if (this.#ended) return null;
      if (!(reason instanceof VigilogError)) throw reason;
      this.#queue.length = 0; // what follows a lost change leads to nothing
      this.#connection.pause(this);
      this.#forget({ code: "gap", message: reason.message });
      this.#connection.request(this);
      return null;
    }
  }

  #reader(name) { return reader(this.#columns[name], this.#manner.integers, this.#manner.form); }

  async #readPart(part, name) {
    const read = this.#reader(name);
    if (Array.isArray(part)) return part.map(read);
    const [sides, answers] = [{ ...part }, {}];
    for (const side of ["plus", "minus"]) {
      const path = part[side]?.fetch;
      if (!path) continue;
      answers[path] ??= await this.#call("GET", path, { query: { integers: "text" }, patience: Infinity, signal: this.#aborted.signal });
      sides[side] = answers[path][side];
    }
    return readChange(sides, read);
  }
}

export class View {
  position = null;
  behind = 0;
  #subscription;
  #manner; // how rows are told: `integers`, and their `form`
  #single;
  #first; // whether the first answer is told like a change
  #columns = {};
  #copies = {}; // of each view, rows by their exact JSON text
  #coming = {}; // the same while a first answer comes in
  #facts = {}; // of each constrained view, facts by their conditions, with how often each counts
  #views = {}; // as the server describes them
  #callbacks = { plus: new Set(), minus: new Set(), change: new Set() };
  #waiting = new Set();
  #error;

  constructor(subscription, integers, single, { onPlus, onMinus, onChange, first = false, rows: form }) {
    [this.#subscription, this.#manner, this.#single, this.#first] = [subscription, { integers, form }, single, first];
    if (onPlus) this.onPlus(onPlus);
    if (onMinus) this.onMinus(onMinus);
    if (onChange) this.onChange(onChange);
    this.ended = this.#follow(); // resolves at the end, with the error if there was one
  }

  // Callbacks come after the copy has changed. What they promise is waited for before the next change and the acknowledgement; an error in them ends the view.
  onPlus(callback) { return listen(this.#callbacks.plus, callback); }
  onMinus(callback) { return listen(this.#callbacks.minus, callback); }
  onChange(callback) { return listen(this.#callbacks.change, callback); }

  get names() { return Object.keys(this.#columns); }
  get size() { return this.#copy().size; }
  columns(name) { return this.#columns[this.#name(name)]; }
  rows(name) { return [...this.#copy(name).values()]; }
  [Symbol.iterator]() { return this.#copy().values(); }

  /**
   * Whether a row is in a view. The rows of a constrained one are facts, `{args, where}`, and its changes are regions: a fact of the first answer and one that came count one, one that
   * went counts one less, and a row is in the view if the facts that cover it count more than nothing.
   */
  has(row, name) {
    const view = this.#name(name);
    if (!this.#views[view]?.constrained) return this.#copies[view].has(JSON.stringify(row));
    let count = 0;
    for (const { fact, number } of this.#facts[view].values()) if (covers(fact, this.#columns[view], row)) count += number;
    return count > 0;
  }

  /** All rows of all views, and the one position that they are of. */
  snapshot() { return { ...this.position, views: mapped(this.#copies, (copy) => [...copy.values()]) }; }

  /** Resolves when the copy is as far as this transaction, and everyone has been called back. */
  waitFor(tx, { signal } = {}) {
    return new Promise((resolve, reject) => {
      const waits = { tx, resolve: () => resolve(this), reject };
      this.#waiting.add(waits);
      this.#release();
      if (this.#waiting.has(waits) && this.position) this.#subscription.expect(tx);
      signal?.addEventListener("abort", () => this.#waiting.delete(waits) && reject(signal.reason));
    });
  }

  cancel() { return this.#subscription.cancel(); }
  close() { this.#subscription.close(); }

  #name(name = this.names.length === 1 ? this.names[0] : "") {
    if (name in this.#columns) return name;
    throw new TypeError(`say which view, of ${this.names.join(", ")}`);
  }

  #copy(name) { return this.#copies[this.#name(name)]; }

  #reader(name) { return reader(this.#columns[name], this.#manner.integers, this.#manner.form); }

  #release() {
    for (const waits of this.#waiting) {
      if (this.position?.tx >= waits.tx) waits.resolve();
      else if (this.#error) waits.reject(this.#error);
      else continue;
      this.#waiting.delete(waits);
    }
  }

  async #follow() {
    let error;
    try {
      for await (const event of this.#subscription) await this.#apply(event);
    } catch (reason) {
      error = reason;
    }
    this.#error = error ?? new VigilogError({ code: "closed", message: "the view was closed" });
    this.#release();
    return error;
  }

  async #apply(event) {
    if (event.kind === "subscribed") [this.#views, this.#columns] = [event.views, mapped(event.views, ({ columns }) => columns)];
    if (event.kind === "stale") this.behind = event.behind;
    const tells = this.position || this.#first;
    const changes = event.kind === "snapshot" ? this.#take(event) : event.kind === "change" ? this.#change(event) : {};
    if (event.last !== false) this.position = this.#subscription.position ?? this.position;
    if (tells && Object.values(changes).some(({ plus, minus }) => plus.length || minus.length)) await this.#tell(event, changes);
    this.#release();
  }

  /** A part of a first answer. The old copy, if there is one, stays until the new one is whole; callbacks are told the difference. */
  #take({ part = 1, last, views, rows }) {
    if (part === 1) this.#coming = mapped(this.#columns, () => new Map());
    for (const [name, some] of Object.entries(views ?? { [this.#name()]: rows })) {
      const read = this.#reader(name);
      for (const row of some) this.#coming[name].set(JSON.stringify(row), read(row));
    }
    if (!last) return {};
    const [old, coming, before] = [this.#copies, this.#coming, this.#facts];
    this.#copies = coming;
    this.#facts = mapped(coming, (copy) => new Map([...copy.values()].map((fact) => [fact.where, { fact, number: 1 }])));
    const without = (some = new Map(), others = new Map()) => [...some].flatMap(([key, row]) => (others.has(key) ? [] : [row]));
    return mapped(coming, (_, name) => this.#views[name]?.constrained ? difference(before[name], this.#facts[name]) : ({ plus: without(coming[name], old[name]), minus: without(old[name], coming[name]) }));
  }

  #change(event) {
    return mapped(event.views ?? { [this.#name()]: event }, ({ plus = [], minus = [], modified }, name) => {
      const copy = this.#copies[name];
      if (this.#views[name]?.constrained) return this.#count(name, plus, minus);
      const change = readChange({ plus, minus, modified }, this.#reader(name));
      for (const row of minus) copy.delete(JSON.stringify(row));
      plus.forEach((row, place) => copy.set(JSON.stringify(row), change.plus[place]));
      return change;
    });
  }

  #count(name, plus, minus) {
    const facts = this.#facts[name];
    for (const [side, by] of [[plus, 1], [minus, -1]]) {
      for (const fact of side) {
        const number = (facts.get(fact.where)?.number ?? 0) + by;
        if (number) facts.set(fact.where, { fact, number });
        else facts.delete(fact.where);
      }
    }
    this.#copies[name] = new Map([...facts.values()].flatMap(({ fact, number }) => (number > 0 ? [[JSON.stringify(fact), fact]] : [])));
    return { plus, minus };
  }

  async #tell({ tx, since }, changes) {
    try {
      for (const [name, { plus, minus }] of Object.entries(changes)) {
        for (const callback of this.#callbacks.minus) for (const row of minus) await callback(row, name, tx);
        for (const callback of this.#callbacks.plus) for (const row of plus) await callback(row, name, tx);
      }
      const told = this.#single ? { tx, since, ...Object.values(changes)[0] } : { tx, since, views: changes };
      for (const callback of this.#callbacks.change) await callback(told);
    } catch (reason) {
      (globalThis.reportError ?? console.error)(reason);
      throw reason;
    }
  }
}

/** How a row that came with its integers as text ("number", "bigint" or "text" is meant) is read, as an array or as one of the `objects`. */
export function reader(columns = [], integers, form) {
  const read = cellsReader(columns, integers);
  if (form !== "objects") return read;
  const name = namer(columns);
  return (row) => (Array.isArray(row) ? name(read(row)) : read(row)); // a fact with conditions has names
}

function cellsReader(columns, integers) {
  const read = { number: Number, bigint: BigInt }[integers];
  const places = read ? columns.map(({ type }) => cellReader(type, read)) : [];
  if (!places.some(Boolean)) return (row) => row;
  return (row) => !Array.isArray(row) ? row : row.map((cell, place) => (places[place] ? places[place](cell) : cell));
}

/** How a cell of a type is read, if there are integers in it: `set<(symbol, number)>` is an array of arrays. */
function cellReader(type, read) {
  if (type === "number" || type === "unsigned") return read;
  if (type.startsWith("set<")) {
    const each = cellReader(type.slice(4, -1), read);
    return each && ((cell) => cell.map(each));
  }
  if (!type.startsWith("(")) return undefined;
  const parts = components(type.slice(1, -1)).map((part) => cellReader(part, read));
  return parts.some(Boolean) ? (cell) => cell.map((value, place) => (parts[place] ? parts[place](value) : value)) : undefined;
}

/** The types of a tuple's components. */
function components(text) {
  const found = [""];
  let depth = 0;
  for (const character of text) {
    if ("<(".includes(character)) depth += 1;
    if (">)".includes(character)) depth -= 1;
    if (character === "," && depth === 0) found.push("");
    else found[found.length - 1] += character;
  }
  return found.map((part) => part.trim());
}

/** Makes an object of a row. */
export function namer(columns) {
  const names = columns.map(({ name }) => name);
  return (row) => Object.fromEntries(names.map((name, place) => [name, row[place]]));
}

/** The position that an event leads to. */
function settled({ tx, left }) { return left ? tx - 1 : tx; }

/** The same with its digest, if the server has told it, as `from` says it. */
function marked(event) { return event.digest ? { tx: settled(event), digest: event.digest } : settled(event); }

/** A change with its rows read, where it has rows and not just their number. */
function readChange(change, read) {
  const result = { ...change };
  for (const side of ["rows", "plus", "minus"]) if (Array.isArray(change[side])) result[side] = change[side].map(read);
  if (change.modified) result.modified = change.modified.map((pair) => ({ old: read(pair.old), new: read(pair.new) }));
  return result;
}

/** JSON, in which a BigInt is a number. */
function text(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(text)}]`;
  if (value === null || typeof value !== "object" || value.toJSON) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${text(member)}`)}}`;
}

function mapped(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]));
}

function listen(listeners, callback) {
  listeners.add(callback);
  return () => void listeners.delete(callback);
}

/** Milliseconds before the next attempt: twice as long each time, up to 10 s, and not the same for all who lost the same server. */
function backoff(attempt) {
  return Math.min(10_000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2);
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

/** crypto.randomUUID is kept from pages that came by plain http; this is not. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What changes one way of counting facts into another. */
function difference(before = new Map(), now = new Map()) {
  const more = (some, others) => [...some.values()].filter(({ fact, number }) => number > (others.get(fact.where)?.number ?? 0)).map(({ fact }) => fact);
  return { plus: more(now, before), minus: more(before, now) };
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?(?:e[+-]?\d+)?u?|[A-Za-z_?][\w?]*|<=|>=|!=|[<>=!(),+\-*/%])/y;
const COMPARED = { "=": (n) => n === 0, "!=": (n) => n !== 0, "<": (n) => n < 0, "<=": (n) => n <= 0, ">": (n) => n > 0, ">=": (n) => n >= 0 };
const ESCAPES = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

/** Whether a row is an instance of a fact: whether its conditions hold. What has no value (overflow, division by zero) is false. */
export function covers({ args, where }, columns, row) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let found; TOKEN.lastIndex < where.trimEnd().length; tokens.push(found[1])) {
    if (!(found = TOKEN.exec(where))) throw new VigilogError({ code: "where", message: `this client cannot read the conditions ${where}` });
  }
  const types = Object.fromEntries(args.map((name, place) => [name, columns[place].type]));
  const values = Object.fromEntries(args.map((name, place) => [name, comparable(row[place], types[name])]));
  let place = 0;
  const take = (wanted) => {
    if (place >= tokens.length || (wanted && tokens[place] !== wanted)) throw new VigilogError({ code: "where", message: `this client cannot read the conditions ${where}` });
    return tokens[place++];
  };
  const conjunction = () => {
    let holds = condition();
    while (tokens[place] === ",") {
      take();
      holds = condition() && holds;
    }
    return holds;
  };
  const condition = () => {
    if (tokens[place] === "!") {
      take(), take("(");
      const inner = conjunction();
      take(")");
      return !inner;
    }
    if (tokens[place] === "true" && (tokens.length === place + 1)) return take() === "true";
    const type = types[tokens.slice(place).find((token) => token in types)];
    const left = sum(type);
    const compare = COMPARED[take()];
    const right = sum(type);
    return left !== null && right !== null && compare(order(left, right));
  };
  const chain = (operators, part) => (type) => {
    let found = part(type);
    while (operators.includes(tokens[place])) found = applied(take(), found, part(type), type);
    return found;
  };
  const factor = (type) => {
    const token = take();
    if (token === "(") {
      const inner = sum(type);
      take(")");
      return inner;
    }
    if (token === "-") return /^\d/.test(tokens[place]) ? constant("-" + take(), type) : applied("-", 0n, factor(type), type);
    return token in types ? values[token] : constant(token, type);
  };
  const product = chain(["*", "/", "%"], factor);
  const sum = chain(["+", "-"], product);
  const found = conjunction();
  if (place < tokens.length) take("");
  return found;
}

function constant(token, type) {
  const text = token.startsWith('"') ? token.slice(1, -1).replace(/\\(U[0-9a-fA-F]{8}|.)/g, (_, said) => (said.length > 1 ? String.fromCodePoint(parseInt(said.slice(1), 16)) : (ESCAPES[said] ?? said))) : token;
  return comparable(text, type);
}

/** A value, or its text, as something that `order` compares: integers and decimals are exact. */
function comparable(value, type) {
  if (type === "number" || type === "unsigned") return BigInt(String(value).replace(/u$/, ""));
  if (type === "float") return Number(value);
  if (type === "boolean") return String(value) === "true" ? 1 : 0;
  if (type.startsWith("decimal")) {
    const [, sign, whole, part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d*))?(?:e([+-]?\d+))?$/.exec(String(value));
    return BigInt(sign + whole + part.padEnd(60, "0").slice(0, 60)) * 10n ** BigInt(Math.max(0, Number(exponent)));
  }
  return type === "timestamp" ? String(value).replace(" ", "T").replace(/Z$/, "") : String(value);
}

/** Less than, equal to or more than 0; texts go by code point. */
function order(one, other) {
  if (typeof one !== "string") return one < other ? -1 : one > other ? 1 : 0;
  const [left, right] = [[...one], [...other]];
  const place = left.findIndex((character, at) => character !== right[at]);
  if (place < 0) return left.length - right.length;
  return place >= right.length ? 1 : left[place].codePointAt(0) - right[place].codePointAt(0);
}

function applied(operator, one, other, type) {
  if (one === null || other === null || ("/%".includes(operator) && other === 0n)) return null;
  const found = { "+": () => one + other, "-": () => one - other, "*": () => one * other, "/": () => one / other, "%": () => one % other }[operator]();
  return found === (type === "unsigned" ? BigInt.asUintN(64, found) : BigInt.asIntN(64, found)) ? found : null;
}
