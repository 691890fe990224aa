#!/bin/sh
{head}
### BEGIN INIT INFO
# Provides:          worstcase-tune
# Required-Start:    $local_fs
# Required-Stop:     $local_fs
# Should-Start:      $network irqbalance cpufrequtils loadcpufreq procps
# Should-Stop:       $network irqbalance
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: Settings of the kernel for low latency
# Description:       Applies what {choice} says, and undoes it.
### END INIT INFO

PATH=/sbin:/usr/sbin:/bin:/usr/bin
program={program}
choice={choice}
journal=/var/lib/worstcase/tune/journal

# Runs the program; what it says is shown, and kept by the system's log where there is one. Nobody has a terminal's width
# here.
run() {
    said=$("$program" tune "$@" 2>&1)
    code=$?
    printf '%s\n' "$said"
    if command -v logger >/dev/null 2>&1; then
        printf '%s\n' "$said" | logger -t worstcase-tune -p daemon.notice
    fi
    return "$code"
}

holds() {
    [ -e "$journal" ] && "$program" tune status >/dev/null 2>&1
}

case "$1" in
start)
    if holds; then
        echo "worstcase-tune: applied already"
        exit 0
    fi
    run apply --keep-going --file "$choice"
    ;;
stop)
    run undo
    ;;
restart | force-reload)
    run undo && run apply --keep-going --file "$choice"
    ;;
reconcile)
    # For scripts that run when a link goes up or the machine wakes up.
    [ ! -e "$journal" ] || run keep --reconcile --file "$choice"
    ;;
status)
    if [ ! -e "$journal" ]; then
        echo "worstcase-tune: nothing is applied"
        exit 3
    fi
    "$program" tune status
    ;;
*)
    echo "Usage: $0 {start|stop|restart|force-reload|reconcile|status}" >&2
    exit 2
    ;;
esac
