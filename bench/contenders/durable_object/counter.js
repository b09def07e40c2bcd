// A counter as a durable object: one SQL statement a call, answered behind the output gate, that is, once it is
// durable. GET tells the count and writes nothing.
import { DurableObject } from "cloudflare:workers";

export class Counter extends DurableObject {
  constructor(state, env) {
    super(state, env);
    this.sql = state.storage.sql;
    this.sql.exec("CREATE TABLE IF NOT EXISTS counter (one INTEGER PRIMARY KEY, value INTEGER NOT NULL)");
  }
  fetch(request) {
    const rows =
      request.method === "GET"
        ? this.sql.exec("SELECT value FROM counter")
        : this.sql.exec("INSERT INTO counter VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET value = value + 1 RETURNING value");
    const [row] = [...rows];
    return new Response(String(row ? row.value : 0));
  }
}

export default {
  fetch(request, env) {
    const name = new URL(request.url).pathname;
    return env.counters.get(env.counters.idFromName(name)).fetch(request);
  },
};
