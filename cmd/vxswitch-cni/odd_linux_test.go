package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// plugin runs the plugin with more keys of a configuration, as a runtime without libcni does.
func (m *machine) plugin(command, version, keys string, pod *netns.Host) (string, error) {
	m.t.Helper()
	file := filepath.Join(filepath.Dir(m.file), "conf")
	must(m.t, os.WriteFile(file, fmt.Appendf(nil, `{"cniVersion": %q, "name": "pods", "type": "vxswitch-cni", "vni": 100, "socket": %q%s}`, version, m.socket, keys), 0o644))
	return m.Try(m.t.Context(), "env", "CNI_COMMAND="+command, "CNI_CONTAINERID="+pod.Name, "CNI_IFNAME=eth0", "CNI_NETNS="+netns.Folder+"/"+pod.NS,
		"CNI_PATH="+m.bin, "sh", "-c", filepath.Join(m.bin, "vxswitch-cni")+" <"+file)
}

// What a runtime of another kind than libcni's may do leaves nothing behind, and deletes nothing that is in use.
func TestOtherRuntimes(t *testing.T) {
	n, a, _ := newPair(t)
	pod := n.Host("odd")
	fails := func(out string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s %v, want %s", out, err, want)
		}
	}

	for _, v := range []string{"0.1.0", "0.2.0"} { // whose results have an address
		out, err := a.plugin("ADD", v, "", pod)
		fails(out, err, "cniVersion: ")
		a.wantNothing("after ADD with version " + v)
	}

	for _, kinds := range [][2]string{{veth, tap}, {tap, veth}} { // the configuration has changed meanwhile
		_, err := a.plugin("ADD", "1.1.0", `, "port": "`+kinds[0]+`"`, pod)
		must(t, err)
		_, err = a.plugin("DEL", "1.1.0", `, "port": "`+kinds[1]+`"`, pod)
		must(t, err)
		a.wantNothing("after DEL of " + kinds[0] + " as " + kinds[1])
		if got := pod.IP("-o", "link"); strings.Contains(got, "eth0") {
			t.Errorf("%s deleted as %s: %s", kinds[0], kinds[1], got)
		}
	}

	must(t, os.WriteFile(filepath.Join(a.bin, "six"), []byte("#!/bin/sh\ncat >/dev/null\n[ $CNI_COMMAND = ADD ] && echo '{\"cniVersion\": \"1.1.0\", \"ips\": [{\"address\": \"fd00::5/64\"}]}'\nexit 0\n"), 0o755))
	out, err := a.plugin("ADD", "1.1.0", `, "mtu": 1279, "ipam": {"type": "six"}`, pod)
	fails(out, err, "fd00::5/64: IPv6 requires an mtu of at least 1280, and eth0 has 1279")
	a.wantNothing("after ADD with a small MTU")

	_, err = a.plugin("ADD", "1.1.0", "", pod)
	must(t, err)
	before := len(a.left())
	out, err = a.plugin("GC", "1.1.0", "", pod)
	fails(out, err, "cni.dev/valid-attachments: required for GC")
	out, err = a.plugin("GC", "1.1.0", `, "cni.dev/valid-attachments": "all"`, pod)
	fails(out, err, `cni.dev/valid-attachments: \"all\": must be a list`)
	if got := a.left(); len(got) != before {
		t.Errorf("after GC without a list: %q", got)
	}
	_, err = a.plugin("GC", "1.1.0", `, "cni.dev/valid-attachments": null`, pod) // libcni's, of none
	must(t, err)
	a.wantNothing("after GC")

	for range 2 { // the container has gone
		_, err = a.plugin("DEL", "1.1.0", "", &netns.Host{Name: pod.Name, NS: "gone"})
		must(t, err)
	}
}
