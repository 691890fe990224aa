#!/sbin/openrc-run
{head}

description="Settings of the kernel for low latency"
description_reconcile="Writes again what was reset, as by a link that went up"
extra_started_commands="reconcile"

program={program}
choice={choice}

depend() {
    need localmount
    after modules sysctl sysfsconf net irqbalance cpufrequtils thermald tlp
}

start() {
    ebegin "Applying what $choice says"
    "$program" tune apply --keep-going --file "$choice"
    eend $?
}

stop() {
    ebegin "Undoing what $choice says"
    "$program" tune undo
    eend $?
}

reconcile() {
    ebegin "Writing again what was reset"
    "$program" tune keep --reconcile --file "$choice"
    eend $?
}
