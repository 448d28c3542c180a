package netns

import (
	"fmt"
	"strings"
)

// An OVS describes an Open vSwitch with its user-space datapath.
type OVS struct {
	Local  string // underlay addresses, CIDR, commas between them
	Under  string // underlay device
	Inside string // device of the guest
	MTU    int    // of the underlay
}

// An OpenVSwitch is one that runs.
type OpenVSwitch struct {
	h   *Host
	dir string
}

// OVS runs Open vSwitch inside the host, with files in a folder of the test. Its bridge
// phy has the underlay device and the underlay addresses, since the datapath sends tunnel
// packets by the addresses of its own bridges; bridge br0 has the guest. Tunnels are made by
// VXLAN.
//
// It drops packets with unfinished checksums: see [Host.TxOff].
func (h *Host) OVS(o OVS) *OpenVSwitch {
	h.t.Helper()
	Tool(h.t, "ovs-vsctl")
	s := &OpenVSwitch{h, h.t.TempDir()}
	start := func(text string, args ...string) error { h.Start(args[0], args[1:]...).Want(text); return nil }
	if err := StartOVS(h.t.Context(), h.NS, s.dir, o.Under, o.Inside, start); err != nil {
		h.t.Fatalf("lab: host %s: %v", h.Name, err)
	}
	h.MTU("phy", o.MTU)
	h.Up("phy")
	h.Addr("phy", o.Local)
	h.Up("br0")
	return s
}

// VXLAN makes the tunnel port of br0 with this name anew, with options such as "csum=true"
// and columns of the port such as "tag=10".
func (s *OpenVSwitch) VXLAN(port, remote string, vni int, settings ...string) {
	s.h.t.Helper()
	options := []string{"options:remote_ip=\"" + remote + "\"", fmt.Sprintf("options:key=%d", vni), "options:dst_port=4789"}
	var columns []string
	for _, o := range settings {
		switch name, _, _ := strings.Cut(o, "="); name {
		case "tag", "trunks", "vlan_mode":
			columns = append(columns, o)
		default:
			options = append(options, "options:"+o)
		}
	}
	s.Set("--if-exists", "del-port", "br0", port) // by itself: OVS 3.1 loses a port that changes its exts
	args := []string{"--", "add-port", "br0", port}
	args = append(append(args, columns...), "--", "set", "interface", port, "type=vxlan")
	s.Set(append(args, options...)...)
}

// Set runs ovs-vsctl, which waits until the switch has done it.
func (s *OpenVSwitch) Set(args ...string) string {
	s.h.t.Helper()
	return s.run(append(ovsControl(s.dir), args...)...)
}

// Dir is the folder with its sockets; that of the database is db.sock.
func (s *OpenVSwitch) Dir() string { return s.dir }

// Flows runs ovs-ofctl.
func (s *OpenVSwitch) Flows(args ...string) string {
	s.h.t.Helper()
	return s.run(append([]string{"ovs-ofctl"}, args...)...)
}

// Ask runs ovs-appctl: "fdb/show br0".
func (s *OpenVSwitch) Ask(args ...string) string {
	s.h.t.Helper()
	return s.run(append([]string{"ovs-appctl"}, args...)...)
}

func (s *OpenVSwitch) run(args ...string) string {
	s.h.t.Helper()
	args = ovsProgram(s.dir, args...)
	return s.h.Run(args[0], args[1:]...)
}
