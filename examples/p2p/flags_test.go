package main

import (
	"bytes"
	"strings"
	"testing"
)

// A wrong value is one line that says which flag, what was given and what is
// allowed, and status 2.
func TestWrongValues(t *testing.T) {
	const id, port = "allowed are 0 to 16777215", "allowed are 1 to 65535"
	const addr = "allowed are IPv4 and IPv6 addresses of one host"
	for _, c := range []struct{ args, want string }{
		{"", `flag -local is missing: required is an address of this host`},
		{"-local", `flag needs an argument: -local`},
		{"-local x", `invalid value "x" for flag -local: "x": ` + addr},
		{"-local 10.0.0.1/24", `invalid value "10.0.0.1/24" for flag -local: "10.0.0.1/24": ` + addr},
		{"-local 0.0.0.0", `invalid value "0.0.0.0" for flag -local: "0.0.0.0": ` + addr},
		{"-local ff02::1", `invalid value "ff02::1" for flag -local: "ff02::1": ` + addr},
		{"-local fe80::1", `invalid value "fe80::1" for flag -local: "fe80::1": allowed are link-local addresses with a zone, such as fe80::1%eth0`},
		{"-local 10.0.0.1 -remote 10.0.0.2,,10.0.0.3", `invalid value "10.0.0.2,,10.0.0.3" for flag -remote: "": ` + addr},
		{"-local 10.0.0.1 -remote 10.0.0.2:4789", `invalid value "10.0.0.2:4789" for flag -remote: "10.0.0.2:4789": ` + addr},
		{"-local 10.0.0.1 -remote 255.255.255.255", `invalid value "255.255.255.255" for flag -remote: "255.255.255.255": ` + addr},
		{"-remote 10.0.0.2,10.0.0.1 -local 10.0.0.1", `invalid value "10.0.0.1" for flag -remote: is the -local address, allowed are addresses of other hosts`},
		{"-local 10.0.0.1 -remote ::ffff:10.0.0.1", `invalid value "10.0.0.1" for flag -remote: is the -local address, allowed are addresses of other hosts`},
		{"-local 10.0.0.1 -remote fd00::2", `invalid value "fd00::2" for flag -remote: allowed are addresses of the family of -local 10.0.0.1`},
		{"-local fd00::1 -remote fd00::2,10.0.0.2", `invalid value "10.0.0.2" for flag -remote: allowed are addresses of the family of -local fd00::1`},
		{"-local 10.0.0.1 -id 16777216", `invalid value "16777216" for flag -id: ` + id},
		{"-local 10.0.0.1 -id -1", `invalid value "-1" for flag -id: ` + id},
		{"-local 10.0.0.1 -id blue", `invalid value "blue" for flag -id: ` + id},
		{"-local 10.0.0.1 -dstport 0", `invalid value "0" for flag -dstport: ` + port},
		{"-local 10.0.0.1 -dstport 65536", `invalid value "65536" for flag -dstport: ` + port},
		{"-local 10.0.0.1 -dev a-very-long-name", `invalid value "a-very-long-name" for flag -dev: allowed is the name of a device, at most 15 bytes`},
		{"-local 10.0.0.1 -dev=", `invalid value "" for flag -dev: allowed is the name of a device, at most 15 bytes`},
		{"-local 10.0.0.1 -queues 2", `flag provided but not defined: -queues; p2p -h lists the flags`},
		{"-local 10.0.0.1 up", `argument "up": allowed are flags only; p2p -h lists them`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if code != 2 || stderr.String() != "p2p: "+c.want+"\n" || stdout.Len() != 0 {
			t.Errorf("p2p %s: status %d\n got %q\nwant %q\nstdout %q", c.args, code, stderr.String(), "p2p: "+c.want+"\n", &stdout)
		}
	}
	var stderr bytes.Buffer
	if run(t.Context(), []string{"-local", "a\nb"}, nil, &stderr); strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("not one line: %q", &stderr)
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != 0 || stderr.Len() != 0 {
		t.Errorf("status %d, stderr %q", code, &stderr)
	}
	for _, f := range []string{"-local ADDR", "-remote ADDR[,ADDR...]", "-id N", "-dstport PORT", "-dev NAME"} {
		if !strings.Contains(stdout.String(), "  "+f+"\n") {
			t.Errorf("no %s in\n%s", f, &stdout)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse([]string{"-local", "::ffff:10.0.0.1", "-remote", "10.0.0.2,10.0.0.3"})
	if err != nil || o.local.String() != "10.0.0.1" || o.id != 1 || o.dstport != 4789 || o.dev != "vxs0" || len(o.flood()) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
