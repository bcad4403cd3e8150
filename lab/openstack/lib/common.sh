# Shared by up and down. Sourced, not run.
# shellcheck shell=bash disable=SC2034 # up uses them

LAB=${OPENSTACK_LAB_DIR:-/tmp/openstack-lab}
RUN=$LAB/run
LOGS=$LAB/log
ETC=$LAB/etc
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

say() { printf '[openstack-lab] %s\n' "$*"; }
die() { printf '[openstack-lab] error: %s\n' "$*" >&2; exit 1; }

# A pid file holds "PID STARTTIME"; the start time (field 22 of
# /proc/PID/stat) tells our process from a later one with the same pid.
start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- $stat
  printf '%s\n' "${20}"
}

alive() { # NAME
  local pid began
  [ -s "$RUN/$1.pid" ] || return 1
  read -r pid began < "$RUN/$1.pid"
  [ "$(start_time "$pid")" = "$began" ] || return 1
  # a zombie has ended
  ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null
}

stop_all() {
  local f name pid began i left
  [ -d "$RUN" ] || return 0
  # daemons of OpenStack first, then rabbit and epmd, the database last
  for pass in services rabbitmq epmd mariadb; do
    left=
    for f in "$RUN"/*.pid; do
      [ -e "$f" ] || continue
      name=$(basename "$f" .pid)
      case $pass in
        services) case $name in rabbitmq|epmd|mariadb) continue;; esac;;
        *) [ "$name" = "$pass" ] || continue;;
      esac
      if ! alive "$name"; then rm -f "$f"; continue; fi
      read -r pid began < "$f"
      case $name in
        # nothing in the lab is worth a graceful end; each one leads a group
        mariadb|rabbitmq) kill -TERM -- "-$pid" 2>/dev/null || true;;
        *) kill -KILL -- "-$pid" 2>/dev/null || true;;
      esac
      left="$left $name"
    done
    for name in $left; do
      for ((i = 0; i < 100; i++)); do
        alive "$name" || break
        sleep 0.1
      done
      if alive "$name"; then
        read -r pid began < "$RUN/$name.pid"
        kill -KILL -- "-$pid" 2>/dev/null || true
        sleep 0.2
      fi
      rm -f "$RUN/$name.pid"
    done
  done
}
