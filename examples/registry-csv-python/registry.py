"""A registry that reads endpoints from a CSV file (host,port,address,target), as a process with `tls: off`. docs/contract.md is what it is made from."""
import csv, json, os, queue, sys, threading, time
from concurrent import futures
import grpc

def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

def field(number, value):  # of a protobuf message: a number, a text or bytes
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value

def fields(message):  # as a dictionary; the last value of a field counts
    found, at = {}, 0
    def number():
        nonlocal at
        n, at = message[at], at + 1
        return n if n < 128 else n - 128 + (number() << 7)
    while at < len(message):
        tag = number()
        size = {1: 8, 5: 4}.get(tag & 7) or number()  # fixed numbers have no length before them
        value = size
        if tag & 7:
            value, at = message[at:at + size], at + size
        found[tag >> 3] = value
    return found

class Session:
    def __init__(self):
        self.out, self.credit, self.more, self.rows = queue.Queue(), 16 << 20, threading.Condition(), {}
        self.most, self.large, self.told = 0, [], []  # bytes of a row, 0: any number; rows that have more, and those of the last Done

    def send(self, message):  # one that costs credit
        cost = max(256, len(message))
        with self.more:
            self.more.wait_for(lambda: self.credit >= cost)
            self.credit -= cost
        self.out.put(message)

    def publish(self, table, rows):  # what differs from the rows before
        before, self.rows[table] = self.rows.get(table, {}), rows
        for k in [k for k, v in rows.items() if 0 < self.most < len(field(1, k) + field(6, v))]:  # each stays as it was
            self.large.append(field(1, table) + field(2, k))
            rows[k] = before.get(k, b"")
            if k not in before:
                del rows[k]
        changes = [field(2, field(1, k) + field(6, v)) for k, v in rows.items() if before.get(k) != v]
        changes += [field(3, k) for k in before if k not in rows]
        for i in range(0, len(changes), 1000):
            self.send(field(6, field(2, field(1, table) + b"".join(changes[i:i + 1000]))))

    def read(self, file):
        services, endpoints, self.large = {}, {}, []
        with open(file) as f:
            for host, port, address, target in csv.reader(f):
                name, port = f"http-{port}", int(port)
                services[f"default/{host}"] = field(1, host) + field(2, "default") + field(6, field(1, port) + field(2, name) + field(3, "HTTP"))
                endpoints[f"default/{host}/{name}/{address}:{target}"] = (field(1, host) + field(2, "default") + field(3, name) + field(4, port)
                                                                          + field(5, address) + field(6, int(target)))
        self.publish("services", services)
        self.publish("endpoints", endpoints)
        if self.large != self.told:
            self.told = self.large
            why = f"a row may have {self.most} bytes"
            self.send(field(8, field(1, b"") + b"".join(field(2, field(1, "a row") + field(2, why) + field(3, row)) for row in self.large[:64])))  # Done

    def follow(self, file):
        seen = os.stat(file)
        self.read(file)
        self.send(field(7, b""))  # Synced
        while True:
            time.sleep(0.05)
            if (now := os.stat(file)) != seen:
                seen = now
                self.read(file)

    def hello(self, config):
        try:
            file = json.loads(config)["file"]
            os.stat(file)
        except Exception as e:
            return self.out.put(field(2, field(1, "file") + field(2, f"the config is no object with the name of a CSV file: {e!r}")))  # Refused
        self.out.put(field(1, field(1, 1) + field(2, "csv") + field(3, "1") + field(4, 1) + field(6, "services") + field(6, "endpoints")))  # Ready
        threading.Thread(target=self.guarded, args=(file,), daemon=True).start()

    def guarded(self, file):
        try:
            self.follow(file)
        except Exception as e:
            print(f"{file}: {e!r}", file=sys.stderr, flush=True)
            os._exit(1)

    def listen(self, messages):
        try:
            for message in messages:
                m = fields(message)
                if 1 in m:
                    hello = fields(m[1])
                    self.most = fields(hello.get(5, b"")).get(4, 0)
                    self.hello(hello.get(3, b"null"))
                elif 2 in m:  # Credit
                    with self.more:
                        self.credit += fields(m[2]).get(1, 0)
                        self.more.notify()
                elif 3 in m:  # Ping
                    self.out.put(field(4, field(1, fields(m[3]).get(1, 0))))
                elif 4 in m:  # Drain
                    break
                else:  # what this plugin doesn't know
                    self.out.put(field(3, field(1, max(256, len(message)))))
        finally:
            self.out.put(None)
            threading.Timer(1, os._exit, [0]).start()

def talk(messages, _):
    session = Session()
    threading.Thread(target=session.listen, args=(messages,), daemon=True).start()
    yield from iter(session.out.get, None)

def lifeline(fd):
    os.read(fd, 1)  # Until the core is gone.
    os._exit(1)

def main():
    if os.environ.get("COXSWAIN_PLUGIN") != "0c1f4a7be25d":
        sys.exit("This is a plugin of the Coxswain control plane, which starts it itself.")
    if fd := os.environ.get("COXSWAIN_LIFELINE"):
        threading.Thread(target=lifeline, args=(int(fd),), daemon=True).start()
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", 2 << 20)])
    for service, methods in {
        "coxswain.v1.Session": {"Talk": grpc.stream_stream_rpc_method_handler(talk)},
        "grpc.health.v1.Health": {"Check": grpc.unary_unary_rpc_method_handler(lambda *_: field(1, 1))},
        "plugin.GRPCController": {"Shutdown": grpc.unary_unary_rpc_method_handler(lambda *_: os._exit(0))},
    }.items():
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "plugin.sock")
    server.add_insecure_port("unix:" + socket)
    server.start()
    print(f"1|1|unix|{socket}|grpc", flush=True)
    server.wait_for_termination()

main()
