#!/usr/bin/env bash
# Several hosts on one machine: a network namespace each. Needs root and iproute2.
#
#   lab.sh up HOSTS RATE MTU    hosts 10.77.0.1 … on a bridge; each link limited to RATE both ways
#                               (e.g. 500mbit; 0: no limit). The bridge itself is 10.77.0.254: a
#                               box whose own port is as fast as all hosts' together.
#   lab.sh pair MTU             two hosts with nothing between them but two loose interfaces, mid_a
#                               and mid_b, in the namespace of the middle: cais_impair joins them
#   lab.sh host I COMMAND…      runs it on host I (with a host name of its own)
#   lab.sh middle COMMAND…      runs it on the box, or in the middle
#   lab.sh down                 takes all of it away; says nothing when there is nothing
#
# LAB (default cais_lab) is the prefix of all names, so that several labs can stand side by side.
set -euo pipefail

lab=${LAB:-cais_lab}
usage() { sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fail() { echo "lab: $*" >&2; exit 1; }

add_namespace() {
  ip netns add "$1" || fail "cannot make namespace $1; is another lab up? Run: lab.sh down"
  ip -n "$1" link set lo up
}

# HOST_NUMBER NAME_IN_THE_MIDDLE MTU
add_host() {
  local host=${lab}_h$1
  add_namespace "$host"
  ip link add "$2" netns "${lab}_mid" type veth peer name e0 netns "$host"
  ip -n "${lab}_mid" link set "$2" mtu "$3" up
  ip -n "$host" link set e0 mtu "$3" up
  ip -n "$host" addr add "10.77.0.$1/24" dev e0
}

one_packet_is_one_packet() {  # NAMESPACE INTERFACE: no trains of segments, real checksums
  ip netns exec "$1" ethtool -K "$2" gso off gro off tso off tx-udp-segmentation off tx off \
    > /dev/null 2>&1 || fail "cannot switch off the offloads of $2"
  ip -n "$1" link set "$2" gso_max_segs 1
}

case "${1:-}" in
up | pair | down | host | middle) ((EUID == 0)) || fail "network namespaces need root" ;;
*) usage ;;
esac

case "$1" in
up)
  [[ $# == 4 ]] || usage
  hosts=$2 rate=$3 mtu=$4
  add_namespace "${lab}_mid"
  ip -n "${lab}_mid" link add br0 type bridge
  ip -n "${lab}_mid" link set br0 mtu "$mtu" up
  ip -n "${lab}_mid" addr add 10.77.0.254/24 dev br0
  for i in $(seq "$hosts"); do
    add_host "$i" "port$i" "$mtu"
    ip -n "${lab}_mid" link set "port$i" master br0
    if [[ $rate != 0 ]]; then
      tc -n "${lab}_h$i" qdisc add dev e0 root tbf rate "$rate" burst 256kb latency 50ms
      tc -n "${lab}_mid" qdisc add dev "port$i" root tbf rate "$rate" burst 256kb latency 50ms
    fi
  done
  ;;
pair)
  [[ $# == 2 ]] || usage
  add_namespace "${lab}_mid"
  add_host 1 mid_a "$2"
  add_host 2 mid_b "$2"
  for end in "${lab}_mid mid_a" "${lab}_mid mid_b" "${lab}_h1 e0" "${lab}_h2 e0"; do
    one_packet_is_one_packet $end
  done
  ;;
host)
  [[ $# -ge 3 ]] || usage
  i=$2; shift 2
  exec ip netns exec "${lab}_h$i" unshare -u \
    sh -c 'hostname "$0"; exec "$@"' "node$i" "$@"
  ;;
middle)
  [[ $# -ge 2 ]] || usage
  shift
  exec ip netns exec "${lab}_mid" "$@"
  ;;
down)
  for name in $(ip netns list | awk -v lab="${lab}_" 'index($1, lab) == 1 {print $1}'); do
    ip netns del "$name"
  done
  ;;
esac
