#!/bin/sh
# A decision and its reward with curl: ./service.sh URL TOKEN_FILE, against a running `bem serve`.
set -e
url=${1:-http://127.0.0.1:7420}
token=$(cat "${2:-bem-state/token}")

ask() { curl -sf -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "$@"; echo; }

# A world of four bits and three actions; making it again changes nothing.
ask -d '{"name":"curl","obs_bits":4,"actions":3,"reward_range":[0,1000]}' "$url/v1/worlds"
# What is to be done for this observation?
answer=$(ask -d '{"obs":"0110"}' "$url/v1/worlds/curl/decide")
echo "$answer"
decision=$(printf '%s' "$answer" | sed 's/.*"decision":"\([0-9]*\)".*/\1/')
# Later: what it brought.
ask -d "{\"decision\":\"$decision\",\"reward\":500}" "$url/v1/worlds/curl/reward"
ask "$url/v1/worlds/curl"
