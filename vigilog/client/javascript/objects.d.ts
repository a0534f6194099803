import type { Answer, CallOptions, Client, Committed, NamedRow, Position, Qos, Row, Stop, SubscriptionEvent, Transaction, Value } from "./vigilog.js";

export interface FrameOptions {
  /** Values of the view's parameters: only objects with these. */
  bind?: Record<string, Value>;
  /** The server remembers how far it came. */
  name?: string;
  /** As of subscriptions; objects are patched by rows. */
  qos?: Omit<Qos, "precision"> & { precision?: "rows" };
}

/** What is known of a database object; when it is deleted it keeps its id, is not `alive`, and its sets are empty. */
export class DatabaseObject<Id = any> {
  static readonly labels: readonly (readonly [name: string, single: boolean])[];
  constructor(id: Id, params?: Row);
  readonly id: Id;
  readonly params: Row;
  readonly alive: boolean;
}

/** An object of a view frame itself. */
export class View<Id = any> extends DatabaseObject<Id> {}

/** An object of a subframe. */
export class SubView<Id = any> extends DatabaseObject<Id> {}

/** A plain reference to an object: its id. There is one for each id, and it lives while something is linked to it. */
export class ObjectName<Id = any> {
  private constructor();
  readonly id: Id;
  readonly alive: boolean;
}

export type Kind<Of extends DatabaseObject> = abstract new (id: any, params?: Row) => Of;
/** What an attribute leads to. */
export type End<Attribute> = Attribute extends ReadonlySet<infer Each> ? Each : NonNullable<Attribute>;

/** What attributes are called in JavaScript. */
export function attributeNames(labels: readonly string[]): Map<string, string>;

/** The objects of a view frame, made of rows whose integers are text. */
export class Graph {
  private constructor();
}

/** Keeps the objects of a view frame. Only `processUpdateMessage` changes them, and `run`, which goes on and on. */
export class ViewAdmin<Key = any, Main extends DatabaseObject = any> {
  protected constructor(client: Client, options?: FrameOptions & { frame?: string });
  static readonly frame: string;
  static readonly classes: Readonly<Record<string, Kind<DatabaseObject>>>;
  static readonly structure?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  static readonly integers?: "number" | "bigint";
  /** Resolves with the first extraction. */
  static open<Admin>(this: { prototype: Admin }, client: Client, options?: FrameOptions & { frame?: string }): Promise<Admin>;
  readonly position: Position | null;
  /** The main objects as they are now, by id; of a view with parameters by the JSON text of parameters and id. */
  readonly objects: ReadonlyMap<Key, Main>;
  /** The classes of frame and subframes, by name. */
  readonly kinds: Readonly<Record<string, Kind<any>>>;
  tell(transaction: Transaction, options?: CallOptions & { key?: string }): Promise<Committed>;
  ask<R extends Row | NamedRow = Row>(goal: string, options?: CallOptions & { at?: number; rows?: "arrays" | "objects" }): Promise<Answer<R>>;
  /** The next change, or the new first answer after a gap; null if none comes in so many seconds. It patches nothing yet. */
  getNotificationMessage(timeout?: number): Promise<SubscriptionEvent | null>;
  /** Applies what has come, at least one message if one comes in time; gives the number of transactions, 0 on timeout. `0` polls, nothing waits. */
  processUpdateMessage(timeout?: number): Promise<number>;
  /** Applies what comes, until the administration is closed; throws what ends it otherwise. */
  run(): Promise<void>;
  onCreate<Of extends DatabaseObject>(kind: Kind<Of> | string, callback: (object: Of) => unknown): Stop;
  onDelete<Of extends DatabaseObject>(kind: Kind<Of> | string, callback: (object: Of) => unknown): Stop;
  onLink<Of extends DatabaseObject, Label extends keyof Of & string>(kind: Kind<Of>, label: Label, callback: (object: Of, other: End<Of[Label]>) => unknown): Stop;
  onLink(kind: string, label: string, callback: (object: any, other: any) => unknown): Stop;
  onUnlink<Of extends DatabaseObject, Label extends keyof Of & string>(kind: Kind<Of>, label: Label, callback: (object: Of, other: End<Of[Label]>) => unknown): Stop;
  onUnlink(kind: string, label: string, callback: (object: any, other: any) => unknown): Stop;
  onError(callback: (reason: unknown) => unknown): Stop;
  close(): void;
}
