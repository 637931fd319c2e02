#!/bin/sh
# Sends a model and an event as JSON, finds the event, gets it by its id, and shows what mistakes are answered with.
#
#   sh examples/curl/tour.sh [address] [CA certificate file] [key file]
set -eu

url=${1:-$(cat .belfry/server.url 2>/dev/null || echo https://localhost:8443)}
ca=${2:-.belfry/ca.pem}
key=$(cat "${3:-.belfry/admin.key}")
now=$(date +%s)000

# call <what for> <path> [curl's options]: prints the answer with its status.
call() {
  what=$1 path=$2
  shift 2
  echo "# $what"
  curl --silent --show-error --max-time 10 --cacert "$ca" --write-out 'HTTP %{http_code}\n\n' \
    --header "service-api-key: $key" --header 'content-type: application/json' "$@" "$url$path"
}

call 'a model says what the source web-1 is' /v1/data-receiver/models --data '{
  "models": [{
    "timestamp": '"$now"',
    "dimensions": {"source": "web-1"},
    "metadataFields": {"name": "Web 1", "type": "host"}
  }]
}'

event='{
  "timestamp": '"$now"',
  "name": "disk full",
  "dimensions": {"source": "web-1"},
  "severity": "SEVERITY_ERROR",
  "status": "STATUS_OPEN",
  "summary": "97 % of /var is used"
}'

call 'an event there; the second one is not taken, and detailedResponse says why' /v1/data-receiver/events \
  --data '{"detailedResponse": true, "events": ['"$event"', {"name": "disk slow", "timestamp": '"$now"'}]}'

found=$(call 'errors seen in the last minute' /v1/events:search --data '{
  "query": {
    "timeRange": {"start": '"$((now - 60000))"'},
    "severities": ["SEVERITY_ERROR"],
    "statuses": ["STATUS_OPEN"],
    "pageInput": {"limit": 1}
  }
}')
echo "$found"
echo

id=$(echo "$found" | sed -n 's/^{"results":\[{"id":"\([^"]*\)".*/\1/p')
call 'that event again, by its id; of its latest occurrence two fields' \
  "/v1/events/$id?fields=severity&fields=lastSeen"

call 'the entity, by a dimension' /v1/modelcontext/entities:search --data '{
  "search_input": {
    "query": {
      "clause": {"filter": {"field": "dimensions.source", "operation": "OP_EQUALS", "value": "web-1"}}
    }
  }
}'

call 'a value that does not exist: refused, with the place' /v1/data-receiver/events \
  --data '{"events": [{"name": "disk full", "severity": "SEVERITY_BAD"}]}'

key=nonsense
call 'a key that is none' "/v1/events/$id"
