import assert from "node:assert/strict";
import { describe, test as run } from "node:test";
import { connect } from "../../../vigilog/client/javascript/vigilog.js";
import { attributeNames, ObjectName, SubView, View, ViewAdmin } from "../../../vigilog/client/javascript/objects.js";
import { serve, vigilog } from "./server.mjs";

const STAFF = `
Class Employee with
  attribute dept: Department; boss: Manager; id_: Tags
  attribute, single salary: Integer
end
.type Tags = set<number>
Class Department with attribute head: Manager end
Class Manager isA Employee end
View Emp isA Employee with
  attribute dept: Department with attribute head: Manager end
    salary: Integer; id_: Tags
end
View TeamOf(boss: Manager) isA Employee with attribute dept: Department with attribute head: Manager end constraint : $ (this boss ~boss) $ end
View Chain isA Employee with attribute boss: Chain end
.decl seen(n: number)
.input seen
.decl items(n: number, size: number)
.input items
Class Item from items(n) with attribute, single size: Integer from size end
View Box isA Item with attribute size: Integer end
View Bare isA Department end
`;
const FACTS = {
  Employee: [["ann"], ["bob"], ["eve"]],
  Manager: [["carl"]],
  Department: [["d1"], ["d2"]],
  Employee_dept: [["ann", "d1"], ["bob", "d1"]],
  Department_head: [["d1", "carl"]],
  Employee_boss: [["ann", "carl"], ["bob", "carl"], ["carl", "carl"]],
};
const PATIENCE = 60;
const AT_ONCE = { concurrency: 4 };
const test = (name, body) => run(name, { timeout: 280_000 }, body); // rather than wait for ever

async function served(t, init) {
  const server = await serve(t, { init, text: STAFF, serve: () => ["--limit", "part=3", "--limit", "large=20", "--limit", "progress=600"] });
  const client = connect(server.url, { tool: "tests" });
  t.after(() => client.close());
  await client.tell({ insert: FACTS });
  return { server, client };
}

/** Objects as a nested answer has them; an object inside itself is a reference. */
function nested(object, around = []) {
  if (around.includes(object)) return { ref: object.id };
  const shown = (value) => (value instanceof View || value instanceof SubView ? nested(value, [...around, object]) : value instanceof ObjectName ? value.id : value);
  const found = { id: object.id };
  for (const [label, single] of object.constructor.labels) {
    if (!single) found[label] = [...object[label]].map(shown).sort((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
    else if (object[label] !== null) found[label] = shown(object[label]);
  }
  return found;
}

const shown = (admin) => [...admin.objects.values()].map((object) => nested(object)).sort((left, right) => (String(left.id) < String(right.id) ? -1 : 1));
const told = async (client, view) => (await client.view(view, { nested: true })).objects.map(({ params, ...object }) => object);
const until = async (admin, tx) => {
  while (admin.position.tx < tx) if (!(await admin.processUpdateMessage(PATIENCE))) break;
};

describe("objects", AT_ONCE, () => {
  test("are patched in place, and callbacks are told in order", async (t) => {
    const { client } = await served(t);
    const admin = await client.enrollFrame("Emp");
    assert.deepEqual(shown(admin), await told(client, "Emp"));
    const [ann, bob] = [admin.objects.get("ann"), admin.objects.get("bob")];
    const [d1] = ann.dept;
    assert.ok(bob.dept.has(d1), "a department is one object, which its employees share");
    assert.ok(ann instanceof View && d1 instanceof SubView && ann instanceof admin.kinds.Emp);
    const [carl] = d1.head;
    assert.ok(carl instanceof ObjectName);
    const happened = [];
    for (const kind of ["Emp", "EmpDept"]) {
      admin.onCreate(kind, ({ id }) => happened.push(["create", id]));
      admin.onDelete(kind, ({ id, alive }) => happened.push(["delete", id, alive]));
    }
    admin.onLink("Emp", "dept", (emp, dept) => happened.push(["link", emp.id, dept.id, dept.alive]));
    admin.onUnlink(admin.kinds.Emp, "dept", (emp, dept) => happened.push(["unlink", emp.id, dept.id]));
    assert.equal(await admin.processUpdateMessage(0), 0);
    assert.equal(await admin.processUpdateMessage(0.05), 0);
    await client.tell({ delete: { Employee: [["ann"]] }, insert: { Employee_dept: [["eve", "d2"]] } });
    assert.equal(await admin.processUpdateMessage(PATIENCE), 1);
    assert.deepEqual(happened, [["unlink", "ann", "d1"], ["delete", "ann", false], ["create", "d2"], ["link", "eve", "d2", true]]);
    assert.deepEqual([ann.id, ann.alive, ann.dept.size, ann.salary], ["ann", false, 0, null]);
    assert.equal(admin.objects.get("bob"), bob);
    await client.tell({ delete: { Manager: [["carl"]] } });
    const message = await admin.getNotificationMessage(PATIENCE);
    assert.equal(message.tx, 3);
    assert.equal(d1.head.size, 1, "what was only looked at is not applied");
    assert.equal(await admin.processUpdateMessage(0), 1);
    assert.deepEqual([carl.alive, d1.head.size], [false, 0]);
    for (const salary of [7, 8]) await client.tell({ upsert: { Employee_salary: [["bob", salary]] } });
    await until(admin, 5);
    assert.equal(bob.salary, 8);
    await client.tell({ insert: { Employee_id_: [["bob", [2, 1]], ["bob", [3]]] } });
    await until(admin, 6);
    assert.deepEqual([...bob.id_], [[1, 2], [3]]);
    await client.tell({ delete: { Employee_id_: [["bob", [1, 2]]] } });
    await until(admin, 7);
    assert.deepEqual([...bob.id_], [[3]], "values that are arrays are found again, too");
    assert.deepEqual(shown(admin), await told(client, "Emp"));
    assert.throws(() => admin.onLink("Emp", "dpt", () => {}), /no attribute dpt; it has dept/);
    assert.throws(() => admin.onCreate("Empl", () => {}), /no class Empl; it has Emp, EmpDept/);
    admin.close();
    assert.equal(await admin.processUpdateMessage(), 0);
  });

  test("a callback that throws leaves them right", async (t) => {
    const { client } = await served(t);
    const admin = await client.enrollFrame("Emp");
    const failed = [];
    admin.onError((reason) => failed.push(reason.message));
    admin.onDelete("Emp", async ({ id }) => { throw new Error(id); });
    await client.tell({ delete: { Employee: [["ann"], ["bob"]] } });
    assert.equal(await admin.processUpdateMessage(PATIENCE), 1);
    assert.deepEqual(failed, ["ann", "bob"]);
    assert.deepEqual(shown(admin), await told(client, "Emp"));
  });

  test("with parameters, in a circle, of numbers, without attributes", async (t) => {
    const { client, server } = await served(t);
    const teams = await client.enrollFrame("TeamOf", { bind: { boss: "carl" } });
    const ann = teams.objects.get('["carl","ann"]');
    assert.deepEqual([ann.id, ann.params, [...ann.dept][0].params], ["ann", ["carl"], ["carl"]]);
    const chain = await client.enrollFrame("Chain");
    assert.deepEqual([...chain.objects.get("carl").boss], [chain.objects.get("carl")]);
    const exact = connect(server.url, { bigint: true });
    t.after(() => exact.close());
    const [boxes, bare] = [await exact.enrollFrame("Box"), await exact.enrollFrame("Bare")];
    await exact.tell({ insert: { items: [[9007199254740993n, 9007199254740995n], [9007199254740992n, 2n]], Department: [["d3"]] } });
    assert.equal(await boxes.processUpdateMessage(PATIENCE), 1);
    assert.equal(await bare.processUpdateMessage(PATIENCE), 1);
    assert.deepEqual([...bare.objects.keys()], ["d1", "d2", "d3"]);
    assert.deepEqual([...boxes.objects.keys()].sort(), [9007199254740992n, 9007199254740993n]);
    assert.equal(boxes.objects.get(9007199254740993n).size, 9007199254740995n);
    await client.tell({ delete: { Employee_boss: [["ann", "carl"]] } });
    while (!(await teams.processUpdateMessage(PATIENCE)));
    assert.ok(!ann.alive);
    await assert.rejects(client.enrollFrame("TeamOf", { bind: { bos: "carl" } }), { code: "column" });
    await assert.rejects(client.enrollFrame("Employee"), { code: "unknown-relation" });
    await assert.rejects(client.enrollFrame("Emp", { qos: { precision: "counts" } }), TypeError);
  });

  test("stay the same over restarts and a gap, and are those of a fresh extraction", async (t) => {
    const { server, client } = await served(t, ["--retain", "transactions=5"]);
    const admin = await client.enrollFrame("Emp");
    let seed = 7;
    const chance = (most) => (seed = (seed * 48271) % 2147483647) % most;
    const people = ["ann", "bob", "eve", "carl", "zoe"];
    const row = () => ({ Employee: [people[chance(5)]], Manager: [people[chance(5)]], Department: [`d${chance(3)}`], Employee_dept: [people[chance(5)], `d${chance(3)}`], Department_head: [`d${chance(3)}`, people[chance(5)]] });
    const random = () => {
      const side = () => Object.fromEntries(Object.entries(row()).filter(() => chance(3) > 0).map(([relation, each]) => [relation, [each]]));
      return { delete: side(), insert: side() };
    };
    for (let round = 0; round < 14; round++) {
      const before = new Map(admin.objects);
      if (round === 3) await server.kill().then(server.start);
      if (round === 8) {
        await server.stop();
        vigilog(["tell", server.data], [...Array.from({ length: 20 }, (_, n) => ({ insert: { seen: [[n]] } })), random(), random()].map((each) => JSON.stringify(each)).join("\n"));
        await server.start();
      }
      const { tx } = await client.tell(random());
      await client.tell({ insert: { Employee: [[`new${round}`]] } });
      while (!admin.objects.has(`new${round}`)) await admin.processUpdateMessage(PATIENCE);
      const fresh = await client.enrollFrame("Emp");
      assert.ok(fresh.position.tx > tx);
      assert.deepEqual(shown(admin), shown(fresh));
      assert.deepEqual(shown(admin), await told(client, "Emp"));
      fresh.close();
      for (const [id, object] of before) assert.ok(admin.objects.get(id) === object ? object.alive : !object.alive && object.dept.size === 0);
    }
  });

  test("of classes for another version: it is told what differs", async (t) => {
    const { client } = await served(t);
    class OldAdmin extends ViewAdmin {
      static frame = "Emp";
      static structure = { Emp: { id: "symbol", dept: "set of EmpDept", salary: "symbol", gone: "symbol" }, EmpDept: { id: "symbol", head: "set of Manager (symbol)" } };
    }
    await assert.rejects(OldAdmin.open(client), { code: "redefined", message: /Emp.salary is number now, and was symbol; Emp.gone is gone; Emp.id_ is new: set of set<number>/ });
  });
});

run("attributes have names that mean nothing else", () => {
  assert.deepEqual([...attributeNames(["dept", "id", "id_", "constructor"])], [["dept", "dept"], ["id", "id__"], ["id_", "id_"], ["constructor", "constructor_"]]);
});
