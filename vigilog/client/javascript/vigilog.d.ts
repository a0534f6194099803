import type { FrameOptions, ViewAdmin } from "./objects.js";

/** A value of a row. Dates, timestamps and decimals are text; integers are what the client's options say. */
export type Value = string | number | bigint | boolean | readonly Value[];
export type Row = readonly Value[];

export interface Column {
  readonly name: string;
  readonly type: string;
}

export interface Described {
  readonly columns: readonly Column[];
  readonly key?: readonly string[];
}

/** A transaction in one history of a database: `db` is new after a restore. */
export interface Position {
  readonly db: string;
  readonly tx: number;
  /** What tells it from one with the same number in another history. */
  readonly digest?: string;
}

/** A position of a history that `db` names, or that is the only one. */
export interface Mark {
  readonly tx: number;
  readonly digest: string;
}

/** A row by the names of its columns. */
export type NamedRow = Readonly<Record<string, Value>>;
/** A row as it may be told. */
export type ToldRow = Row | NamedRow;

export interface Transaction {
  delete?: Record<string, readonly ToldRow[]>;
  insert?: Record<string, readonly ToldRow[]>;
  update?: Record<string, readonly { old: ToldRow; new: ToldRow }[]>;
  upsert?: Record<string, readonly ToldRow[]>;
  delete_key?: Record<string, readonly ToldRow[]>;
}

export interface Options {
  /** Sent with every call and every subscription. */
  token?: string;
  /** What the server's log and status call this program. */
  tool?: string;
  /** Node 20 has a WebSocket only behind --experimental-websocket: pass that of a package, such as ws. */
  WebSocket?: new (url: URL) => any;
  fetch?: typeof globalThis.fetch;
  /** How many seconds calls that are safe to repeat are tried again while the server is away; 30. */
  patience?: number;
  /** What values of the types number and unsigned become: "number", which is exact up to 2^53, or "text". */
  integers?: "number" | "text";
  /** They become BigInt. */
  bigint?: boolean;
}

export interface CallOptions {
  signal?: AbortSignal;
  patience?: number;
}

export interface Modified<R extends Row | NamedRow = Row> {
  readonly old: R;
  readonly new: R;
}

/** What a view gained and lost; `modified` pairs rows of a view with a key that replace each other. */
export interface Change<R extends Row | NamedRow = Row> {
  readonly plus: readonly R[];
  readonly minus: readonly R[];
  readonly modified?: readonly Modified<R>[];
}

/** What an alert says of one key. */
export interface Report<R extends Row | NamedRow = Row> {
  readonly alert: string;
  readonly state: "satisfied" | "ceased" | "again";
  readonly row: R;
  readonly old?: R;
  readonly proofs?: number;
  readonly message?: string;
  readonly severity?: string;
}

/** What triggers did. */
export type Triggered = Readonly<Record<string, { readonly insert: readonly Row[]; readonly delete: readonly Row[] }>>;

export interface Committed {
  readonly tx: number;
  readonly views: Readonly<Record<string, { readonly plus: number; readonly minus: number }>>;
  readonly alerts?: readonly Report[];
  readonly triggered?: Triggered;
}

export interface Preview {
  readonly tx: number;
  readonly views: Readonly<Record<string, Change>>;
  readonly subscriptions?: readonly { readonly name?: string; readonly id?: number | string; readonly views: Readonly<Record<string, Change>> }[];
  readonly alerts?: readonly Report[];
  readonly triggered?: Triggered;
}

/** A fact of a constrained view: all rows of these columns for which the conditions hold. What such a view gains and loses are regions of rows, told as facts. */
export interface Fact {
  readonly args: readonly string[];
  readonly where: string;
}

/** Whether a row is an instance of a fact. */
export function covers(fact: Fact, columns: readonly Column[], row: Row): boolean;

/** Makes objects of rows, for columns as messages describe them. */
export function namer(columns: readonly Column[]): (row: Row) => NamedRow;

/** Reads rows that came with integers as text. */
export function reader(columns: readonly Column[], integers: "number" | "bigint" | "text"): (row: Row) => Row;

/** The objects of a view frame, as it nests them. */
export interface Nested {
  readonly id: Value;
  readonly params?: Readonly<Record<string, Value>>;
  readonly [label: string]: any;
}

export interface Answer<R extends Row | NamedRow = Row> {
  readonly tx: number;
  readonly columns: readonly Column[];
  readonly rows: readonly R[];
}

/** Why an atom holds, or why it does not: one of the two is null. */
export interface Reason {
  readonly tx: number;
  readonly proof: any;
  readonly why_not: WhyNot | null;
}

/** A literal that does not hold, and for each rule that could give it the literals that fail. */
export interface WhyNot {
  readonly literal: string;
  readonly holds: false;
  readonly note: string;
  readonly near: readonly string[];
  readonly rules: readonly {
    readonly rule: string;
    readonly place: string;
    readonly ways: readonly { readonly holds: readonly string[]; readonly fails: WhyNot }[];
    readonly more: number;
    readonly note?: string;
  }[];
}

export interface Views extends Position {
  readonly views: readonly (Described & { readonly view: string; readonly strategy: string })[];
}

/** How changes are wanted; by default every one, at once, with its rows. Times are seconds. */
export interface Qos {
  every?: number;
  changes?: number;
  within?: number;
  coalesce?: boolean;
  precision?: "rows" | "counts" | "signal";
  max_staleness?: number;
}

interface Wish {
  /** Only rows with these values in these columns. */
  bind?: Record<string, Value>;
  /** Makes it durable: the server remembers what was dealt with. */
  name?: string;
  qos?: Qos;
}

/** One view, several that change together, or a goal whose answers are followed like a view's. A text is a view's name. */
export type ViewSpec = string | (Wish & ({ view: string } | { views: readonly string[] } | { frame: string } | { query: string }));

/** With `from`, a position (a `position` of before, or its number and `db`), or null for a first answer; without it, a known name goes on where it was. */
export type SubscriptionSpec = ViewSpec | ((Exclude<ViewSpec, string> | (Wish & { alert: string })) & { from?: number | Mark | Position | null; db?: string });

/** The structure of a view frame: its parts, the main one first, and the relations of their attributes. */
export interface FrameShape {
  readonly name: string;
  readonly parameters: readonly { readonly name: string; readonly type: string }[];
  readonly parts: readonly {
    readonly relation: string;
    readonly type: string;
    readonly parameters: number;
    readonly attributes: readonly { readonly label: string; readonly relation: string; readonly type: string; readonly single?: boolean; readonly part?: string; readonly of?: string }[];
  }[];
}

type Side<R extends Row | NamedRow> = readonly R[] | number;

/** What a subscription is told. With one view or a query there are `rows`, `plus` and `minus`, with several there are `views`. */
export type SubscriptionEvent<R extends Row | NamedRow = Row> =
  | { readonly kind: "subscribed"; readonly db: string; readonly tx: number; readonly digest?: string; readonly views: Readonly<Record<string, Described>>; readonly frame?: FrameShape }
  /** A part of a first answer; part 1 begins it anew, `last` ends it. */
  | {
      readonly kind: "snapshot";
      readonly tx: number;
      readonly digest?: string;
      readonly last: boolean;
      readonly part?: number;
      readonly of?: number;
      readonly rows?: readonly R[];
      readonly views?: Readonly<Record<string, readonly R[]>>;
    }
  /** One transaction, or with `since` the net effect of several. Numbers of rows, or nothing, if `precision` says so. */
  | {
      readonly kind: "change";
      readonly tx: number;
      readonly digest?: string;
      readonly since?: number;
      readonly plus?: Side<R>;
      readonly minus?: Side<R>;
      readonly modified?: readonly Modified<R>[];
      readonly views?: Readonly<Record<string, { readonly plus?: Side<R>; readonly minus?: Side<R>; readonly modified?: readonly Modified<R>[] }>>;
    }
  /** One report of an alert; so many are `left` of its transaction. */
  | ({ readonly kind: "alert"; readonly tx: number; readonly digest?: string; readonly left?: number } & Report<R>)
  | { readonly kind: "progress"; readonly tx: number; readonly digest?: string }
  | { readonly kind: "stale"; readonly tx: number; readonly behind: number; readonly since: number }
  /** Changes are missing, or the database is another one (`history`): a first answer follows. */
  | { readonly kind: "gap"; readonly code: string; readonly message: string }
  /** The server stops. The subscription goes on when it is back. */
  | { readonly kind: "closing"; readonly tx: number; readonly digest?: string };

/** What callbacks of a view are told: `plus` and `minus` of one view, or `views`. */
export interface ViewChange<R extends Row | NamedRow = Row> extends Partial<Change<R>> {
  readonly tx: number;
  readonly since?: number;
  readonly views?: Readonly<Record<string, Change<R>>>;
}

export interface Callbacks<R extends Row | NamedRow = Row> {
  onPlus?: (row: R, view: string, tx: number) => unknown;
  onMinus?: (row: R, view: string, tx: number) => unknown;
  onChange?: (change: ViewChange<R>) => unknown;
}

/** Ends what it was given for. */
export type Stop = () => void;

export function connect(url: string | URL, options?: Options): Client;

export class VigilogError extends Error {
  constructor(said: { code?: string; message?: string; [member: string]: unknown }, status?: number);
  readonly code: string;
  /** Of an answer by HTTP. */
  readonly status?: number;
  readonly constraint?: string;
  readonly rows?: readonly Row[];
  readonly why?: readonly object[];
  readonly others?: Readonly<Record<string, readonly Row[]>>;
  readonly triggers?: readonly string[];
  readonly chain?: readonly (readonly string[])[];
}

export class Client {
  constructor(url: string | URL, options: Options);
  readonly connected: boolean;
  onConnection(callback: (connected: boolean) => void): Stop;
  /** Commits a transaction, once, however often it had to be sent. */
  tell(transaction: Transaction, options?: CallOptions & { key?: string }): Promise<Committed>;
  /** Rows are arrays, or, with `rows: "objects"`, objects: `ask<NamedRow>(goal, { rows: "objects" })`. */
  ask<R extends Row | NamedRow = Row>(goal: string, options?: CallOptions & { at?: number; rows?: "arrays" | "objects" }): Promise<Answer<R>>;
  why(goal: string, options?: CallOptions & { depth?: number }): Promise<Reason>;
  whatIf(transaction: Transaction, options?: CallOptions): Promise<Preview>;
  violations(options?: CallOptions): Promise<Position & { readonly violations: readonly object[] }>;
  acknowledge(alert: string, row: Row, options?: CallOptions): Promise<object>;
  views(options?: CallOptions): Promise<Views>;
  view<R extends Row | NamedRow = Row>(name: string, options?: CallOptions & { bind?: Record<string, Value>; at?: number; rows?: "arrays" | "objects" }): Promise<Answer<R> & Position>;
  view(name: string, options: CallOptions & { nested: true; bind?: Record<string, Value>; at?: number }): Promise<Position & { readonly objects: readonly Nested[] }>;
  /** With `rows: "objects"` rows are objects: `subscribe<NamedRow>(spec, { rows: "objects" })`; so for `enroll`. */
  subscribe<R extends Row | NamedRow = Row>(spec: SubscriptionSpec, options?: { rows?: "arrays" | "objects" }): Subscription<R>;
  enroll<R extends Row | NamedRow = Row>(spec: ViewSpec, options?: Callbacks<R> & { first?: boolean; signal?: AbortSignal; rows?: "arrays" | "objects" }): Promise<View<R>>;
  /** The objects of a view frame, patched in place; it needs objects.js beside this module. */
  enrollFrame(frame: string, options?: FrameOptions): Promise<ViewAdmin>;
  call(method: string, path: string, options?: CallOptions & { query?: Record<string, unknown>; body?: object; headers?: HeadersInit }): Promise<any>;
  close(): void;
}

/** Events, in order, each once. Leaving the loop closes it; a refusal is thrown from it. */
export class Subscription<R extends Row | NamedRow = Row> implements AsyncIterable<SubscriptionEvent<R>> {
  private constructor();
  /** Of the event that was delivered last. */
  readonly position: Position | null;
  [Symbol.asyncIterator](): AsyncIterator<SubscriptionEvent<R>>;
  ack(tx?: number): void;
  /** Makes the server tell as soon as it has come to a transaction, whether that changed anything or not. */
  expect(tx: number): void;
  cancel(): Promise<void>;
  close(): void;
}

/** A copy of a view, or of several at the same position, that keeps itself equal to the server's. */
export class View<R extends Row | NamedRow = Row> implements Iterable<R> {
  private constructor();
  readonly position: Position | null;
  /** Seconds, if the server said that it cannot keep up with `max_staleness`. */
  readonly behind: number;
  /** Resolves at the end, with the error if there was one. */
  readonly ended: Promise<Error | undefined>;
  readonly names: readonly string[];
  /** Of the only view, as are all that are asked without a name. */
  readonly size: number;
  columns(name?: string): readonly Column[];
  rows(name?: string): R[];
  /** Whether a row is in the view; of a constrained one, whose rows are facts, whether they cover it. */
  has(row: Row, name?: string): boolean;
  [Symbol.iterator](): IterableIterator<R>;
  snapshot(): Position & { views: Record<string, R[]> };
  onPlus(callback: NonNullable<Callbacks<R>["onPlus"]>): Stop;
  onMinus(callback: NonNullable<Callbacks<R>["onMinus"]>): Stop;
  onChange(callback: NonNullable<Callbacks<R>["onChange"]>): Stop;
  waitFor(tx: number, options?: { signal?: AbortSignal }): Promise<this>;
  /** Ends it; the server forgets its name. */
  cancel(): Promise<void>;
  /** Ends it here; a named one can be gone on with. */
  close(): void;
}
