// The types as a program uses them: compiled by `./run check`, never run.
import { ObjectName, SubView, ViewAdmin } from "../../../vigilog/client/javascript/objects.js";
import { connect, VigilogError, type NamedRow, type SubscriptionEvent, type View } from "../../../vigilog/client/javascript/vigilog.js";

const client = connect("http://127.0.0.1:8080", { token: "secret", bigint: true });
const view: View<[string, bigint]> = await client.enroll({ view: "payroll", bind: { department: "dev" } }, { onPlus: (row, name, tx) => [row, name, tx] });
const stop = view.onChange(({ tx, plus = [], minus = [] }) => console.log(tx, plus.length - minus.length));
const { tx } = await client.tell({ insert: { employee: [["ann", "dev", 9007199254740993n]] } });
for (const [department, total] of await view.waitFor(tx)) console.log(department.toUpperCase(), total + 1n);
stop();
await view.cancel();

function told(event: SubscriptionEvent): string {
  switch (event.kind) {
    case "snapshot":
      return `${event.rows?.length} of ${event.tx}`;
    case "gap":
      return event.message;
    default:
      return String(event.kind === "subscribed" ? event.db : event.tx);
  }
}

for await (const event of client.subscribe({ views: ["above", "payroll"], name: "audit", from: 41, db: "5f0c", qos: { every: 1, coalesce: true } })) told(event);
const why: VigilogError | undefined = (await view.ended) as VigilogError | undefined;
console.log(why?.code, (await client.ask<[string]>('above("ann", m)')).rows.map(([member]) => member));

await client.tell({ upsert: { employee: [{ name: "ann", department: "dev", pay: 3n }] } });
for await (const event of client.subscribe<NamedRow>("payroll", { rows: "objects" })) {
  if (event.kind === "change" && Array.isArray(event.plus)) event.plus[0]?.["name"];
}
const byName: readonly NamedRow[] = (await client.enroll<NamedRow>("payroll", { rows: "objects" })).rows();
const objects: readonly NamedRow[] = (await client.view<NamedRow>("payroll", { rows: "objects" })).rows;
console.log(objects[0]?.department);

const admin = await client.enrollFrame("Emp", { bind: { boss: "carl" }, qos: { every: 1 } });
class Team extends SubView<string> {
  declare readonly members: ReadonlySet<ObjectName<string>>;
  declare readonly head: Team | null;
}
class TeamAdmin extends ViewAdmin<string, Team> {
  static override readonly frame = "Team";
}
const teams = await TeamAdmin.open(client);
const head: string | undefined = teams.objects.get("dev")?.head?.id;
const ended = teams.onLink(Team, "members", (team, member) => `${team.id} ${member.id.toUpperCase()} ${head}`);
teams.onUnlink(Team, "head", (team, before) => before.members.size - team.members.size);
admin.onLink("Emp", "dept", (emp, dept) => [emp.id, dept.id]);
const applied: number = (await teams.processUpdateMessage(10)) + (await admin.processUpdateMessage());
ended();
for (const { id, ...rest } of (await client.view("Emp", { nested: true })).objects) console.log(id, rest, applied);

// @ts-expect-error there is no such attribute
teams.onLink(Team, "membrs", () => {});
// @ts-expect-error less than rows cannot be patched
await client.enrollFrame("Emp", { qos: { precision: "counts" } });
// @ts-expect-error a copy begins with a first answer
await client.enroll({ view: "above", from: 3 });
// @ts-expect-error there is no such operation
await client.tell({ add: { edge: [["a", "b"]] } });
// @ts-expect-error only the view itself moves its position
view.position = null;
