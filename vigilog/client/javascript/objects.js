/**
 * The objects of a view frame (docs/frames.md): one for each frame and database object, shared between parents, patched in place.
 *
 *     const admin = await client.enrollFrame("Emp");       // with generated classes: await EmpAdmin.open(client)
 *     const ann = admin.objects.get("ann");                // ann.dept is a Set of objects
 *     admin.onLink("Emp", "dept", (emp, dept) => …);
 *     await admin.processUpdateMessage(10);                // applies what has come, waits up to 10 seconds for something
 *
 * The law: after each change the objects are those that a first extraction would make anew, and an object that was there before is the same object.
 */

import { reader, VigilogError } from "./vigilog.js";

const TAKEN = new Set(["id", "alive", "params", ...Object.getOwnPropertyNames(Object.prototype)]); // what objects have beside their attributes
const LONGEST = 2 ** 31 - 1; // milliseconds of a timer
const ORDER = ["unlink", "delete", "create", "link"]; // in which callbacks are told

/** What attributes are called: by their labels, unless these mean something in an object. */
export function attributeNames(labels) {
  const names = new Map();
  for (const label of labels) {
    let name = label;
    while (TAKEN.has(name) || (name !== label && labels.includes(name)) || [...names.values()].includes(name)) name += "_";
    names.set(label, name);
  }
  return names;
}

/** What is known of a database object; when it is deleted it keeps its id, is not `alive`, and its sets are empty. */
export class DatabaseObject {
  static labels = []; // attributes, and which of them are single

  constructor(id, params = []) {
    [this.id, this.params, this.alive] = [id, params, true];
    for (const [name, single] of this.constructor.labels) this[name] = single ? null : new Set();
  }
}

/** An object of a view frame itself. */
export class View extends DatabaseObject {}

/** An object of a subframe. */
export class SubView extends DatabaseObject {}

/** A plain reference to an object: its id. There is one for each id, and it lives while something is linked to it. */
export class ObjectName {
  constructor(id) { [this.id, this.alive] = [id, true]; }
}

/** The objects of a view frame, made of rows whose integers are text, so that their JSON text is their exact key. Generated classes are given by their parts' names. */
export class Graph {
  objects = new Map(); // the main objects by id; of a view with parameters by the JSON text of parameters and id
  classes = {};
  parts = {}; // objects of each part by their rows' keys
  #shape;
  #rows = {}; // of each relation by key
  #read = {};
  #slots = []; // [part, attribute's name, slot]
  #linked = new Map(); // references, and values that are no primitives: what they are, and how many links lead to them

  constructor(shape, columns, integers, classes = {}) {
    [this.#shape, this.structure] = [shape, structure(shape)];
    for (const part of shape.parts) {
      const names = attributeNames(part.attributes.map(({ label }) => label));
      this.classes[part.relation] = classes[part.relation] ?? made(shape, part, names);
      this.parts[part.relation] = new Map();
      for (const slot of part.attributes) this.#slots.push([part.relation, names.get(slot.label), slot]);
      for (const { relation } of [part, ...part.attributes]) [this.#rows[relation], this.#read[relation]] = [new Map(), reader(columns[relation], integers)];
    }
  }

  /** Patches the objects by all of a change, `{relation: {plus, minus}}`; gives what happened, in the order in which it is told. */
  apply(changes) {
    const told = Object.fromEntries(ORDER.map((kind) => [kind, []]));
    const side = (relation, name) => this.#sorted(relation, changes[relation]?.[name] ?? []);
    for (const { relation } of this.#shape.parts)
      for (const [key, , row] of side(relation, "plus")) {
        const object = new this.classes[relation](row.at(-1), row.slice(0, -1));
        this.parts[relation].set(key, object);
        if (relation === this.#shape.name) this.objects.set(this.#mainKey(row, key), object);
        told.create.push({ kind: "create", object });
      }
    for (const [part, label, slot] of this.#slots)
      for (const [kind, rows] of [["unlink", side(slot.relation, "minus")], ["link", side(slot.relation, "plus")]])
        for (const [, raw, row] of rows) told[kind].push(this.#link(kind, part, label, slot, raw, row));
    for (const { relation } of this.#shape.parts)
      for (const [key, , row] of side(relation, "minus")) {
        const object = this.parts[relation].get(key);
        this.parts[relation].delete(key);
        if (relation === this.#shape.name) this.objects.delete(this.#mainKey(row, key));
        object.alive = false;
        told.delete.push({ kind: "delete", object });
      }
    for (const [key, { end, links }] of this.#linked) if (!links && this.#linked.delete(key) && end instanceof ObjectName) end.alive = false;
    for (const [relation, { plus = [], minus = [] }] of Object.entries(changes)) {
      for (const row of minus) this.#rows[relation].delete(JSON.stringify(row));
      for (const row of plus) this.#rows[relation].set(JSON.stringify(row), row);
    }
    return ORDER.flatMap((kind) => told[kind]);
  }

  /** Goes over to a new first answer: the difference is applied as one change. */
  replace(rows) {
    const changes = {};
    for (const [relation, old] of Object.entries(this.#rows)) {
      const now = new Map((rows[relation] ?? []).map((row) => [JSON.stringify(row), row]));
      const without = (some, others) => [...some].flatMap(([key, row]) => (others.has(key) ? [] : [row]));
      changes[relation] = { plus: without(now, old), minus: without(old, now) };
    }
    return this.apply(changes);
  }

  /** Rows with their keys, and as they are read, in order. */
  #sorted(relation, rows) {
    return rows.map((row) => [JSON.stringify(row), row, this.#read[relation](row)]).sort(([, , left], [, , right]) => compared(left, right));
  }

  #mainKey(row, key) { return this.#shape.parameters.length ? key : row[0]; }

  #link(kind, part, label, slot, raw, row) {
    const object = this.parts[part].get(JSON.stringify(raw.slice(0, -1)));
    if (!object) throw new VigilogError({ code: "message", message: `${slot.relation} links an object that ${part} does not have` });
    const other = this.#end(kind, slot, raw, row.at(-1));
    if (!slot.single) object[label][kind === "link" ? "add" : "delete"](other);
    else if (kind === "link") object[label] = other;
    else if (object[label] === other) object[label] = null;
    return { kind, object, label, other };
  }

  /** What a link leads to. */
  #end(kind, slot, raw, value) {
    if (slot.part) {
      const inner = this.#shape.parts.find(({ relation }) => relation === slot.part);
      return this.parts[slot.part].get(JSON.stringify([...raw.slice(0, inner.parameters ?? 0), raw.at(-1)]));
    }
    if (!slot.of && typeof value !== "object") return value;
    const key = JSON.stringify([slot.of ? "" : slot.type, raw.at(-1)]);
    if (!this.#linked.has(key)) this.#linked.set(key, { end: slot.of ? new ObjectName(value) : value, links: 0 });
    const found = this.#linked.get(key);
    found.links += kind === "link" ? 1 : -1;
    return found.end;
  }
}

/** Keeps the objects of a view frame. Only `processUpdateMessage` changes them, and `run`, which calls it again and again. */
export class ViewAdmin {
  static frame = ""; // of generated classes: the view frame,
  static classes = {}; // the classes of its parts, by their names,
  static structure = undefined; // what was known of these when they were generated,
  static integers = undefined; // and what integers are: "number", "bigint", or else what the client says

  /** Resolves with the first extraction. `qos`, `bind` (of parameters) and `name` are those of subscriptions. */
  static async open(client, options = {}) {
    const admin = new this(client, options);
    try {
      while (!admin.position) if (!(await admin.#next())) throw new VigilogError({ code: "closed", message: "the client is closed" });
    } catch (reason) {
      admin.close();
      throw reason;
    }
    return admin;
  }

  position = null;
  #client;
  #name;
  #graph = null;
  #integers;
  #subscription;
  #events;
  #coming = null; // the next event, once it was asked for
  #seen = []; // events that were given, and are not applied yet
  #first = {}; // a first answer, as it comes in
  #callbacks = new Map();
  #failed = new Set();
  #working = Promise.resolve(0);

  constructor(client, { frame, qos = {}, bind, name } = {}) {
    if ((qos.precision ?? "rows") !== "rows") throw new TypeError("objects are patched by rows: subscribe, for counts and signals");
    [this.#client, this.#name] = [client, frame ?? this.constructor.frame];
    const { subscription, integers } = client.exact({ frame: this.#name, ...(bind && { bind }), ...(name && { name }), ...(Object.keys(qos).length && { qos }) });
    [this.#subscription, this.#integers, this.#events] = [subscription, this.constructor.integers ?? integers, subscription[Symbol.asyncIterator]()];
  }

  /** The main objects as they are now, by id; of a view with parameters by the JSON text of parameters and id. */
  get objects() { return this.#graph.objects; }
  /** The classes of frame and subframes, by name. */
  get kinds() { return this.#graph.classes; }

  tell(transaction, options) { return this.#client.tell(transaction, options); }
  ask(goal, options) { return this.#client.ask(goal, options); }

  /** The next change, or the new first answer after a gap; null if none comes in so many seconds. It patches nothing yet: `processUpdateMessage` will. */
  async getNotificationMessage(timeout) {
    const until = deadline(timeout);
    for (;;) {
      const event = await this.#get(until);
      if (!event) return null;
      this.#seen.push(event);
      if (event.kind === "change" || (event.kind === "snapshot" && event.last)) return event;
    }
  }

  /** Applies what has come, at least one message if one comes in time; gives the number of transactions, 0 on timeout. `0` polls, nothing waits. Callbacks are waited for. */
  processUpdateMessage(timeout) {
    const work = () => this.#process(deadline(timeout));
    return (this.#working = this.#working.then(work, work)); // one after the other, so that none sees half a transaction
  }

  /** Applies what comes, until the administration is closed; throws what ends it otherwise. */
  async run() { while (await this.#next()); }

  onCreate(kind, callback) { return this.#on("create", kind, "", callback); }
  onDelete(kind, callback) { return this.#on("delete", kind, "", callback); }
  onLink(kind, label, callback) { return this.#on("link", kind, label, callback); }
  onUnlink(kind, label, callback) { return this.#on("unlink", kind, label, callback); }
  /** Calls back with what another callback threw. */
  onError(callback) {
    this.#failed.add(callback);
    return () => void this.#failed.delete(callback);
  }

  /** Ends it; the objects stay as they are. */
  close() { this.#subscription.close(); }

  async #process(until) {
    let applied = 0;
    while (this.#seen.length) applied += await this.#take(this.#seen.shift());
    for (;;) {
      const event = await this.#get(applied ? 0 : until);
      if (!event) return applied;
      applied += await this.#take(event);
    }
  }

  async #next() {
    const event = await this.#get(Infinity);
    if (event) await this.#take(event);
    return Boolean(event);
  }

  /** The next event; null if there is none until then, or none any more. */
  async #get(until) {
    this.#coming ??= this.#events.next();
    this.#coming.catch(() => {}); // whoever waits for it hears of it
    const left = Math.max(0, until - Date.now());
    const { timer, late } = left === Infinity ? {} : waiting(Math.min(left, LONGEST));
    const found = await Promise.race(late ? [this.#coming, late] : [this.#coming]).finally(() => clearTimeout(timer));
    if (!found) return null;
    if (found.done) return null; // asked for again, it says so again
    this.#coming = null;
    return found.value;
  }

  async #take(event) {
    if (event.kind === "subscribed") this.#know(event);
    if (event.kind === "snapshot") return this.#begin(event);
    if (event.kind !== "change") return 0;
    const happened = this.#graph.apply(event.views ?? { [this.#name]: event }); // a frame without attributes is one view
    this.position = this.#subscription.position;
    await this.#tell(happened);
    return 1;
  }

  async #begin({ part = 1, last, views, rows }) {
    if (part === 1) this.#first = {};
    for (const [relation, rows_] of Object.entries(views ?? { [this.#name]: rows })) (this.#first[relation] ??= []).push(...rows_);
    if (!last) return 0;
    const anew = this.position !== null;
    const happened = this.#graph.replace(this.#first);
    [this.#first, this.position] = [{}, this.#subscription.position];
    if (anew) await this.#tell(happened);
    return Number(anew && happened.length > 0);
  }

  /** The structure of the frame. One that changed while the objects lived cannot be patched into them. */
  #know({ frame, views }) {
    const now = structure(frame);
    const before = this.#graph ? this.#graph.structure : this.constructor.structure;
    const different = before ? differences(before, now) : "";
    const what = this.#graph ? `${this.#name} has other attributes now: ${different}; make its objects anew` : `these classes were generated for another version of ${this.#name}: ${different}`;
    if (different) throw new VigilogError({ code: "redefined", message: what });
    if (this.#graph) return;
    const columns = Object.fromEntries(Object.entries(views).map(([name, view]) => [name, view.columns]));
    this.#graph = new Graph(frame, columns, this.#integers, this.constructor.classes);
  }

  #on(what, kind, label, callback) {
    const known = this.#graph.classes;
    const found = typeof kind === "string" ? known[kind] : Object.values(known).find((each) => each === kind);
    if (!found) throw new TypeError(`${this.#name} has no class ${kind.name ?? kind}; it has ${Object.keys(known).join(", ")}`);
    const labels = found.labels.map(([name]) => name);
    if (label && !labels.includes(label)) throw new TypeError(`${found.name} has no attribute ${label}; it has ${labels.join(", ") || "none"}`);
    const key = `${what} ${label}`;
    if (!this.#callbacks.has(found)) this.#callbacks.set(found, {});
    const callbacks = (this.#callbacks.get(found)[key] ??= new Set());
    callbacks.add(callback);
    return () => void callbacks.delete(callback);
  }

  /** Calls back. All of the transaction is applied by now, so nobody sees half of it; what a callback throws leaves the objects right. */
  async #tell(happened) {
    for (const { kind, object, label = "", other } of happened)
      for (const callback of this.#callbacks.get(object.constructor)?.[`${kind} ${label}`] ?? [])
        try {
          await (label ? callback(object, other) : callback(object));
        } catch (reason) {
          if (!this.#failed.size) (globalThis.reportError ?? console.error)(reason);
          for (const failed of this.#failed) failed(reason);
        }
  }
}

/** A class for a part, where none was generated. */
function made({ name }, { relation, attributes }, names) {
  const Base = relation === name ? View : SubView;
  const labels = attributes.map(({ label, single = false }) => [names.get(label), single]);
  return { [relation]: class extends Base { static labels = labels; } }[relation];
}

/** What is known of the objects of each part, in words, as vigilog/protocol/shapes.py has it. */
function structure({ name, parameters, parts }) {
  const told = ({ part, of, type, single }) => `${single ? "" : "set of "}${part ?? (of ? `${of} (${type})` : type)}`;
  const known = parts.map(({ relation, type, attributes }) => [relation, { id: type, ...Object.fromEntries(attributes.map((slot) => [slot.label, told(slot)])) }]);
  const found = Object.fromEntries(known);
  for (const each of parameters) found[name][`~${each.name}`] = each.type;
  return found;
}

function differences(old, now) {
  const found = [];
  for (const part of new Set([...Object.keys(old), ...Object.keys(now)])) {
    if (!old[part] || !now[part]) found.push(`${part} is ${now[part] ? "new" : "gone"}`);
    else
      for (const label of new Set([...Object.keys(old[part]), ...Object.keys(now[part])])) {
        const [before, after] = [old[part][label], now[part][label]];
        if (before === undefined) found.push(`${part}.${label} is new: ${after}`);
        else if (after === undefined) found.push(`${part}.${label} is gone`);
        else if (before !== after) found.push(`${part}.${label} is ${after} now, and was ${before}`);
      }
  }
  return found.join("; ");
}

/** Values in the order of the language: texts by code point, arrays by their elements. */
function compared(left, right) {
  if (Array.isArray(left)) {
    for (let place = 0; place < Math.min(left.length, right.length); place++) {
      const found = compared(left[place], right[place]);
      if (found) return found;
    }
    return left.length - right.length;
  }
  if (typeof left === "string" && left !== right) {
    const [one, other] = [[...left], [...right]];
    const place = one.findIndex((character, at) => character !== other[at]);
    if (place < 0) return -1;
    return other[place] === undefined ? 1 : one[place].codePointAt(0) - other[place].codePointAt(0);
  }
  return left < right ? -1 : left > right ? 1 : 0;
}

function deadline(timeout) { return timeout == null ? Infinity : Date.now() + 1000 * timeout; }

function waiting(milliseconds) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds, null)));
  return { timer, late };
}
