"""Sends a model and events over gRPC, streams 1,000 more, finds them again, and shows what mistakes are answered with.

    python3 tour.py [address] [CA certificate file] [key file]
"""

import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from google.protobuf.struct_pb2 import Struct
from google.rpc import error_details_pb2, status_pb2  # generated, too: neither grpcio-status nor googleapis-common-protos is needed

from belfry.clause.v1 import clause_pb2
from belfry.entities.v1 import entity_service_pb2, entity_service_pb2_grpc
from belfry.events.v1 import event_pb2, query_service_pb2, query_service_pb2_grpc
from belfry.receiver.v1 import receiver_pb2, receiver_service_pb2, receiver_service_pb2_grpc

# Both codes mean "send again", and sending data again is harmless: what is stored already changes nothing.
RETRIES = json.dumps({
    "methodConfig": [{
        "name": [{}],
        "retryPolicy": {
            "maxAttempts": 5,
            "initialBackoff": "0.2s",
            "maxBackoff": "5s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
        },
    }]
})


def open_channel(address, ca, key):
    """A channel that sends the key with every call, and over TLS alone."""
    def add_key(_context, callback):
        callback((("service-api-key", key),), None)

    credentials = grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(root_certificates=ca), grpc.metadata_call_credentials(add_key))
    return grpc.secure_channel(urlsplit(address).netloc, credentials, options=[("grpc.service_config", RETRIES)])


def now_ms():
    return time.time_ns() // 1_000_000


def struct(**members):
    made = Struct()
    made.update(members)
    return made


def put_model(receiver, dimensions):
    answer = receiver.PutModels(receiver_service_pb2.PutModelsRequest(models=[
        receiver_pb2.Model(timestamp=now_ms(), dimensions=dimensions,
                           metadata_fields=struct(name="Python tour", type="host")),
    ]), timeout=10)
    print(answer.message)


def put_events(receiver, dimensions):
    """Two events, one of which is not taken: it is named, and the other one is stored."""
    answer = receiver.PutEvents(receiver_service_pb2.PutEventsRequest(detailed_response=True, events=[
        receiver_pb2.Event(name="disk full", timestamp=now_ms(), dimensions=dimensions, summary="97 % of /var is used",
                           severity=event_pb2.SEVERITY_ERROR, status=event_pb2.STATUS_OPEN),
        receiver_pb2.Event(name="disk slow", timestamp=now_ms(), dimensions={}, summary="no word of whose disk"),
    ]), timeout=10)
    print(answer.message)
    for failed in answer.failed_events:
        print(f"  not taken: {failed.error}")


def stream_events(receiver, dimensions, count):
    """`count` instances of ten events, in one call."""
    start_ms = now_ms() - count

    def requests():
        for i in range(count):
            yield receiver_service_pb2.PutEventRequest(canonical=receiver_pb2.Event(
                name=f"job {i % 10} is late", timestamp=start_ms + i, dimensions=dimensions,
                severity=event_pb2.SEVERITY_WARNING, status=event_pb2.STATUS_OPEN))

    print(receiver.PutEvent(requests(), timeout=60).message)


def find_entity(entities, source):
    equals = clause_pb2.Filter(field="dimensions.source", operation=clause_pb2.OP_EQUALS)
    equals.value.string_value = source
    query = clause_pb2.Query(clause=clause_pb2.Clause(filter=equals))
    found = entities.SearchEntities(entity_service_pb2.SearchEntitiesRequest(
        search_input=entity_service_pb2.EntitySearch(query=query)), timeout=10)
    for entity in found.entities.entities:
        print(f"entity {entity.id} is {entity.name}")


def find_events(events, since_ms):
    """Every event seen since then, four a page."""
    request = query_service_pb2.SearchEventsRequest()
    request.query.time_range.start = since_ms
    request.query.page_input.limit = 4
    request.query.sort_by.add().by_field.field = "name"
    while True:
        page = events.SearchEvents(request, timeout=10)
        for event in page.results:
            occurrence = event.occurrences[0]
            print(f"  {event.name}: {event_pb2.Severity.Name(occurrence.severity)}, "
                  f"{occurrence.instance_count} times, {event.id}")
        if not page.page_info.has_next:
            print(f"{page.page_info.total_count} events in all")
            return
        request.query.page_input.cursor = page.page_info.end_cursor


def show_mistake(what, call):
    try:
        call()
    except grpc.RpcError as error:
        print(f"{what}: {error.code().name}: {error.details()}")
        for violation in field_violations(error):
            print(f"  field {violation.field}: {violation.description}")


def field_violations(error):
    """The fields that the details of an error name."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    request = error_details_pb2.BadRequest()
    return [violation for detail in status.details if detail.Unpack(request) for violation in request.field_violations]


def kept_address():
    """The address that `npm start` has left in its data directory."""
    file = Path(".belfry/server.url")
    return file.read_text().strip() if file.exists() else "https://localhost:8443"


def main(address=None, ca_file=".belfry/ca.pem", key_file=".belfry/admin.key"):
    address = address or kept_address()
    ca = Path(ca_file).read_bytes()
    key = Path(key_file).read_text().strip()
    since_ms = now_ms() - 1000
    dimensions = {"source": "python-tour"}
    with open_channel(address, ca, key) as channel:
        receiver = receiver_service_pb2_grpc.DataReceiverServiceStub(channel)
        entities = entity_service_pb2_grpc.EntityServiceStub(channel)
        events = query_service_pb2_grpc.EventQueryServiceStub(channel)
        put_model(receiver, dimensions)
        put_events(receiver, dimensions)
        stream_events(receiver, dimensions, 1000)
        find_entity(entities, "python-tour")
        find_events(events, since_ms)
        show_mistake("no query", lambda: events.SearchEvents(query_service_pb2.SearchEventsRequest(), timeout=10))
    with open_channel(address, ca, key[:-1]) as channel:
        events = query_service_pb2_grpc.EventQueryServiceStub(channel)
        show_mistake("a key cut short", lambda: events.GetEvent(query_service_pb2.GetEventRequest(id="x"), timeout=10))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
