package ovsdb

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bfd/vxlan"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/node"
)

// bfdLocal is bfd_config_local of all tunnels that have BFD: where packets go, in the management VNI (RFC 8971, sections 3 and 8).
var bfdLocal = map[string]string{"bfd_dst_mac": vxlan.MAC.String(), "bfd_dst_ip": "127.0.0.1"}

// diagnostics are the messages of RFC 5880, section 4.1.
var diagnostics = []string{
	bfd.NoDiag: "No Diagnostic", bfd.TimeExpired: "Control Detection Time Expired", bfd.EchoFailed: "Echo Function Failed",
	bfd.NeighborDown: "Neighbor Signaled Session Down", bfd.PlaneReset: "Forwarding Plane Reset", bfd.PathDown: "Path Down",
	bfd.ConcatDown: "Concatenated Path Down", bfd.DiagAdminDown: "Administratively Down", bfd.ReverseConcat: "Reverse Concatenated Path Down",
}

func diagnostic(d bfd.Diag) string {
	if int(d) < len(diagnostics) {
		return diagnostics[d]
	}
	return "Reserved for future use"
}

// bfdState returns a state as column bfd_status has it.
func bfdState(s bfd.State) string { return strings.ReplaceAll(s.String(), "-", "_") }

// bfdStatus returns the column bfd_status for a session.
func bfdStatus(x *node.BFDSession) map[string]string {
	return map[string]string{
		"enabled": "true", "forwarding": strconv.FormatBool(x.Status == bfd.Alive),
		"state": bfdState(x.State), "diagnostic": diagnostic(x.Diag),
		"remote_state": bfdState(x.RemoteState), "remote_diagnostic": diagnostic(x.RemoteDiag),
	}
}

// noBFD is the column bfd_status for a tunnel without sessions.
var noBFD = map[string]string{"enabled": "false", "info": "the tunnel has no bfd in the configuration of the node"}

// probes is what BFD says of the tunnel of the node.
type probes struct {
	on     bool // it has BFD
	status map[netip.Addr]map[string]string
}

// probe reads what BFD says of the tunnel.
func (s *Switch) probe() (p probes) {
	for _, t := range s.node.Config().Tunnels {
		p.on = p.on || t.Name == s.cfg.Tunnel && t.BFD != nil
	}
	p.status = map[netip.Addr]map[string]string{}
	for _, x := range s.node.BFD() {
		if x.Tunnel == s.cfg.Tunnel {
			p.status[x.Peer.Remote] = bfdStatus(&x)
		}
	}
	return p
}

// local returns bfd_config_local of all tunnels.
func (p *probes) local() map[string]string {
	if p.on {
		return bfdLocal
	}
	return nil
}

// of returns bfd_status of the tunnels to VTEPs, none while the session has not begun.
func (p *probes) of(remotes map[netip.Addr]bool) map[netip.Addr]map[string]string {
	all := map[netip.Addr]map[string]string{}
	for a := range remotes {
		if all[a] = p.status[a]; !p.on {
			all[a] = noBFD
		}
	}
	return all
}

// vteps returns those that rows lead to, or accept packets from, but for local ones.
func vteps(rows []control.Row, local []netip.Addr) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, r := range rows {
		if f, ok := r.(control.Flood); ok && !slices.Contains(local, f.VTEP.Addr()) { // there is one for each VTEP
			all[f.VTEP.Addr()] = true
		}
	}
	return all
}
