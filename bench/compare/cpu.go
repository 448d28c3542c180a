package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// tick is the unit of processor time in /proc: 1/100 s on every Linux that Go runs on.
const tick = 0.01

// cpu is processor time, in seconds.
type cpu struct {
	all float64 // of the whole machine, interrupts included
	own float64 // of the processes that are the tunnel, in user space and in their system calls
}

// cpu returns what has been spent so far.
func (l *lab) cpu() (c cpu, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err == nil {
		c.all, err = busy(string(stat))
	}
	for _, p := range l.tunnels {
		stat, e := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		own, e2 := spent(string(stat))
		c.own, err = c.own+own, errors.Join(err, e, e2)
	}
	return c, err
}

// per returns processor seconds for each unit of what came through: the machine's, and
// the tunnel processes', NaN where the tunnel is no process.
func (l *lab) per(c cpu, units float64) (all, own float64) {
	if own = math.NaN(); len(l.tunnels) > 0 {
		own = c.own / units
	}
	return c.all / units, own
}

// busy reads /proc/stat: user, nice, system, idle, iowait, irq, softirq of all
// processors (Linux 6.18; what follows is other guests' and already counted time).
func busy(stat string) (float64, error) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat: %q", line)
	}
	return sum(f[1], f[2], f[3], f[6], f[7])
}

// spent reads /proc/PID/stat: fields 14 and 15, utime and stime. Field 2, the name in
// parentheses, may have spaces in it.
func spent(stat string) (float64, error) {
	f := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat: %q", stat)
	}
	return sum(f[11], f[12])
}

func sum(ticks ...string) (s float64, err error) {
	for _, t := range ticks {
		n, e := strconv.ParseUint(t, 10, 64)
		s, err = s+float64(n)*tick, errors.Join(err, e)
	}
	return s, err
}
