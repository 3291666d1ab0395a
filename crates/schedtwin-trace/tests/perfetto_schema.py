# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks hand-written Perfetto messages and a trace against the official schema.

Needs the PyPI package `perfetto`. Usage: perfetto_schema.py TRACE < FIELDS, where FIELDS has a line
`message field number kind` for every field. Prints what differs, then `ok` and counts.
"""

import sys

try:
    from google.protobuf import descriptor_pb2
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as official
except ImportError as error:
    print(f"skip: {error}")
    sys.exit(0)

PACKAGE = "perfetto.protos."
INTEGERS = {"int32", "int64", "uint32", "uint64", "bool"}
TYPES = {value: name[5:].lower() for name, value in descriptor_pb2.FieldDescriptorProto.Type.items()}
failures = []
fields = 0


def is_repeated(field):
    """Newer protobuf packages have dropped `label`, older ones have nothing else."""
    found = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if found is None else found


for line in sys.stdin:
    message, name, number, kind = line.rstrip("\n").split(" ", 3)
    fields += 1
    descriptor = official.DESCRIPTOR.pool.FindMessageTypeByName(PACKAGE + message)
    field = descriptor.fields_by_number.get(int(number))
    if field is None or field.name != name.removeprefix("r#"):
        failures.append(f"{message}.{name} = {number}: officially {field and field.name}")
        continue
    scalar, label = (part.strip() for part in kind.split(","))
    # An enum is an int32 on the wire, and prost is told so.
    expected = TYPES[field.type].replace("enum", "int32")
    repeated = is_repeated(field)
    # Texts that nobody has checked, and messages that are not decoded.
    undecoded = scalar == 'bytes = "bytes"' and expected in {"string", "message", "bytes"}
    if undecoded or scalar == "varint" and expected in INTEGERS:
        scalar = expected
    if scalar != expected or (label == "repeated") != repeated:
        failures.append(f"{message}.{name}: {kind}, officially {expected}, repeated: {repeated}")

trace = official.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())


def find_unknown(message, path):
    for unknown in UnknownFieldSet(message):
        failures.append(f"{path}: unknown field {unknown.field_number}")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if is_repeated(field) else [value]:
            find_unknown(each, f"{path}.{field.name}")


find_unknown(trace, "Trace")
events = {}
for packet in trace.packet:
    if packet.HasField("ftrace_events"):
        compact = packet.ftrace_events.compact_sched
        count = len(compact.switch_timestamp)
        events["sched_switch"] = events.get("sched_switch", 0) + count
        for column in ("prev_state", "next_pid", "next_prio", "next_comm_index"):
            if len(getattr(compact, "switch_" + column)) != count:
                failures.append(f"switch_{column} is not as long as its times")
        if any(i >= len(compact.intern_table) for i in compact.switch_next_comm_index):
            failures.append("a name is missing")
        events["sched_waking"] = events.get("sched_waking", 0) + len(compact.waking_timestamp)
        for event in packet.ftrace_events.event:
            kind = event.WhichOneof("event")
            events[kind] = events.get(kind, 0) + 1
    elif packet.HasField("track_event"):
        kind = official.TrackEvent.Type.Name(packet.track_event.type)
        events[kind] = events.get(kind, 0) + 1

for failure in failures:
    print(failure)
if not failures:
    print("ok", fields, " ".join(f"{kind}={count}" for kind, count in sorted(events.items())))
