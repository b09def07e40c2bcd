using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "counting", worker = .counting),
    (name = "disk", disk = (path = "STORE", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:PORT", http = (), service = "counting")],
);

const counting :Workerd.Worker = (
  modules = [(name = "counter.js", esModule = embed "counter.js")],
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [(className = "Counter", uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "counters", durableObjectNamespace = "Counter")],
);
