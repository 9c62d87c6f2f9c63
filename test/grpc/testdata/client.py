"""A client of grpcio that finds its servers by xDS (GRPC_XDS_BOOTSTRAP). languages_test.go says what it reads and prints."""

import collections
import json
import sys

import grpc

methods = {}


def method_of(target):
    if target not in methods:
        channel = grpc.insecure_channel("xds:///" + target)
        # A google.protobuf.StringValue whose text is short: a tag, a length, the text.
        methods[target] = channel.unary_unary("/test.Echo/Who", lambda _: b"", lambda raw: raw[2:].decode())
    return methods[target]


for line in sys.stdin:
    order = json.loads(line)
    out = {"from": collections.Counter()}
    for _ in range(order["calls"]):
        try:
            out["from"][method_of(order["target"])(None, timeout=30, metadata=tuple((order.get("headers") or {}).items()))] += 1
        except grpc.RpcError as err:
            out["code"], out["details"] = err.code().value[0], err.details()
            break
    print(json.dumps(out), flush=True)
