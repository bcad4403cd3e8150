# Shared settings of the lab scripts; sourced, not run.
# shellcheck shell=bash disable=SC2034 # the scripts use them
LAB=${SIGSTORE_LAB_DIR:-/tmp/sigstore-lab}
BIN=${SIGSTORE_LAB_BIN:-$LAB/bin}
RUN=$LAB/run LOG=$LAB/log KEYS=$LAB/keys TRUST=$LAB/trust
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Pinned versions; those of cosign v3 and the services are in src/tools/go.mod.
# All of them build with Go 1.26; newer rekor-tiles, timestamp-authority and
# sigstore-go releases need Go 1.27.
V_REGISTRY=v3.1.2 V_COSIGN2=v2.6.5

# Loopback ports. The URLs end up in signed statements and in the trusted
# root, so they are fixed.
REG=127.0.0.1:5700      # distribution: no referrers API (fallback tag schema)
REG11=127.0.0.1:5701    # OCI 1.1 referrers API, in memory
PROXY=127.0.0.1:5702    # fault-injecting, counting proxy in front of REG
PROXY11=127.0.0.1:5703  # the same in front of REG11
OIDC=http://127.0.0.1:5710
FULCIO=http://127.0.0.1:5720
REKOR1=http://127.0.0.1:5730
TSA=http://127.0.0.1:5740
REKOR2=http://127.0.0.1:5750
MEMLOG=127.0.0.1:5790
SERVICES=(registry registry11 proxy proxy11 oidc memlog fulcio rekor1 tsa rekor2)

# No cosign call may read or write the caller's ~/.sigstore or ~/.docker.
lab_env() {
  export HOME=$LAB/home DOCKER_CONFIG=$LAB/home/.docker COSIGN_PASSWORD=lab COSIGN_YES=true
  mkdir -p "$HOME"
  unset SIGSTORE_ID_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL ACTIONS_ID_TOKEN_REQUEST_TOKEN
}

# alive NAME: is the process recorded in the pid file still the one we started?
alive() {
  local pid start
  [ -f "$RUN/$1.pid" ] || return 1
  read -r pid start < "$RUN/$1.pid" || return 1
  [ -d "/proc/$pid" ] && [ "$(starttime "$pid")" = "$start" ]
}

# starttime PID: start time in clock ticks, which tells a reused pid apart.
starttime() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
