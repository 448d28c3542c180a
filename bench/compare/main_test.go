package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The program executes itself inside the guests; here that is the test.
func TestMain(m *testing.M) {
	if inside(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	o, err := parse(nil, nil)
	if err != nil || o.rounds != 4 || o.seconds != 2 || len(o.cases) != len(cases()) || len(o.contenders) != len(contenders()) {
		t.Errorf("defaults: %+v, %v", o, err)
	}
	o, err = parse(strings.Fields("-case rr,tcp1 -contender vxswitch,kernel -rounds 9 -seconds 1 -json a -svg b"), nil)
	if err != nil || !slices.Equal(tool.Names(o.cases), []string{"tcp1", "rr"}) || !slices.Equal(tool.Names(o.contenders), []string{"kernel", "vxswitch"}) ||
		o.rounds != 9 || o.seconds != 1 || o.JSON != "a" || o.SVG != "b" {
		t.Errorf("%+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"-case tcp9":     `invalid value "tcp9" for flag -case: "tcp9" is none of tcp1, tcp4, tcp1-off, tcp4-off, tcp1-9000, tcp4-9000, tcp1-9000-off, tcp4-9000-off, udp64, udp1400, udp4, rr, pairs, idle, host-tcp1, host-tcp4, host-tcp1-off, host-udp64, host-rr, ovs-tcp1, ovs-tcp4, ovs-udp1400, ovs-udp4, portable-tcp1, portable-udp64, gpe-tcp1, gpe-udp64, tun-tcp1, tun-udp64, ipip-tcp1, ipip-udp64, packet-tcp1, packet-tcp4, packet-tcp1-off, packet-udp64, packet-udp1400, packet-rr, packet-idle, packet-ports`,
		"-contender x":   `invalid value "x" for flag -contender: "x" is none of kernel, vxswitch, vxswitch-flows, kernel-vxswitch, vxswitch-kernel, kernel-flows, flows-kernel, veth, ovs, ovs-vxswitch, vxswitch-ovs, kernel-host, vxswitch-host, vxswitch-flows-host, flows-one, flows-many, gpe, kernel-gpe, gpe-tun, udp, packet, portable, ipip-lone, ipip-plain, ipip`,
		"-rounds 0":      "flag -rounds: allowed are 1 to 1000",
		"-seconds 0":     "flag -seconds: allowed are 1 to 60",
		"-rounds 1 tcp1": `argument "tcp1": allowed are flags only`,
		"-x":             "flag provided but not defined: -x",
	} {
		if _, err := parse(strings.Fields(args), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-seconds N") {
		t.Errorf("%v, %s", err, &usage)
	}
}

func TestExitStatus(t *testing.T) {
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"-rounds", "x"}, &out, &said); code != 2 || strings.Count(said.String(), "\n") != 1 || out.Len() > 0 {
		t.Errorf("status %d, %q, %q", code, &out, &said)
	}
	said.Reset()
	if code := run(t.Context(), []string{"-h"}, &out, &said); code != 0 || !strings.HasPrefix(said.String(), "usage: compare") {
		t.Errorf("status %d, %q", code, &said)
	}
}

// A contender whose program is missing is left out, and it is said.
func TestPresent(t *testing.T) {
	o := options{contenders: []contender{{name: "a"}, {name: "b", need: "no-such-program", pkg: "p"}}}
	var said bytes.Buffer
	if got := strings.Join(tool.Names(o.present(&said)), ","); got != "a" {
		t.Errorf("present: %s", got)
	}
	if said.String() != "b: skipped, no-such-program is not installed (Debian package p)\n" {
		t.Errorf("said %q", &said)
	}
}

var must = check.OK
